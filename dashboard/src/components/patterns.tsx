// The patterns of the pictures, once for the whole page. Pictures refer to them by their ids.
import type { JSX } from 'preact'

export function Patterns(): JSX.Element {
  return (
    <svg class="patterns" aria-hidden="true">
      <defs>
        <pattern id="p-slide" width="6" height="6" patternUnits="userSpaceOnUse">
          <path class="stroke-wait thin" d="M-1 7 7-1M-1 1 1-1M5 7 7 5" />
        </pattern>
        <pattern id="p-ready" width="9" height="38" patternUnits="userSpaceOnUse">
          <path class="stroke-ready" d="M2 15.5l4 4.5-4 4.5" />
        </pattern>
        <pattern id="p-limit" width="7" height="7" patternUnits="userSpaceOnUse">
          <path class="stroke-limit" d="M-1 8 8-1M-1 1 1-1M6 8 8 6" />
        </pattern>
        <pattern id="p-hold" width="7" height="8" patternUnits="userSpaceOnUse">
          <path class="stroke-still" d="M2 0v8" />
        </pattern>
      </defs>
    </svg>
  )
}
