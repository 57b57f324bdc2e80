import type { JSX } from 'preact'
import { signal } from '@preact/signals'
import { Dialog } from './dialog.tsx'

export const isHelpOpen = signal(false)

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'search'],
  ['?', 'this list'],
  ['g o', 'overview'],
  ['g s', 'sources'],
  ['g e', 'events'],
  ['g l', 'lanes'],
  ['g r', 'runs'],
  ['g n', 'endpoints'],
  ['g m', 'limits'],
  ['g d', 'dead letters'],
  ['g p', 'replays'],
  ['g w', 'alerts'],
  ['g a', 'audit log'],
  ['g k', 'keys'],
  ['j  k', 'next row, row before'],
  ['↵', 'open the row'],
  ['.', 'open the row at its acts'],
  ['x', 'choose the row'],
  ['⇧x', 'choose all rows from the last chosen one'],
  ['r', 'retry, or run now'],
  ['h', 'hold the lane'],
  ['[  ]', 'shorter axis, longer axis'],
  ['space', 'freeze the picture, follow again'],
  ['c', 'copy the id'],
  ['t', 'light or dark'],
  ['esc', 'close'],
]

/** Acts that lose something have no key of their own. */
export function Help(): JSX.Element {
  return (
    <Dialog title="Keyboard" onClose={() => (isHelpOpen.value = false)}>
      <dl class="key-list">
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(/ +/).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
