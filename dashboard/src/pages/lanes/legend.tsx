import type { JSX } from 'preact'

/** What the marks of the lane picture mean. */
export function LaneLegend(): JSX.Element {
  return (
    <div class="legend lane-legend" aria-label="What the marks mean" role="group">
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="water" x="1" y="12" width="8" height="5" />
          <rect class="water" x="9" y="8" width="8" height="9" />
          <rect class="water" x="17" y="4" width="8" height="13" />
          <path class="surface no-fill" d="M1 12h8V8h8V4h8" />
        </svg>
        events join
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="gate" x="11" y="1" width="4" height="16" rx="1.5" />
          <rect class="gate" x="7" y="0" width="12" height="3.5" rx="1.75" />
        </svg>
        due when it meets now
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="slide" x="1" y="6" width="21" height="11" />
          <rect class="cap" x="22" y="2" width="2" height="15" />
        </svg>
        at the latest
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="late" x="1" y="1" width="24" height="16" />
          <path class="stroke-ready" d="M5 5l4 4-4 4M12 5l4 4-4 4M19 5l4 4-4 4" />
        </svg>
        ready, so late
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="running" x="1" y="2" width="13" height="14" rx="2" />
          <rect class="lease" x="14" y="2.5" width="11" height="13" />
        </svg>
        runs, lease
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="limited" x="1" y="1" width="24" height="16" />
          <rect class="limited-marks" x="1" y="1" width="24" height="16" />
        </svg>
        waits for a limit
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="failed" x="1" y="2" width="5" height="14" rx="1.5" />
          <line class="backoff" x1="9" x2="25" y1="9" y2="9" />
        </svg>
        failed, runs again
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="holding" x="1" y="1" width="24" height="16" />
        </svg>
        held
      </span>
      <span>
        <svg class="pic" aria-hidden="true">
          <rect class="blocking" x="1" y="1" width="24" height="16" />
          <rect class="wall" x="11" y="1" width="5" height="16" />
        </svg>
        blocked
      </span>
    </div>
  )
}
