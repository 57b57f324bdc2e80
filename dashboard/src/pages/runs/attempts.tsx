// The failed attempts of a run, one below the other. Equal errors are said once.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Code } from '../../components/basics.tsx'
import { Icon } from '../../components/icon.tsx'
import { clockMs, duration, plural, visible } from '../../lib/format.ts'
import type { Attempt } from '../../lib/types.ts'

const SHOWN = 8

/** Of many attempts, only the last are kept; `total` counts them all. */
export function AttemptTable({
  attempts,
  total,
}: {
  attempts: readonly Attempt[]
  total?: number | undefined
}): JSX.Element {
  const [isAll, setAll] = useState(false)
  const first = isAll ? 0 : Math.max(0, attempts.length - SHOWN)
  const shown = attempts.slice(first)
  const last = attempts.at(-1)
  const same = attempts.filter(({ error }) => error === last?.error).length
  return (
    <>
      <table class="tight attempts">
        <thead class="unseen-head">
          <tr>
            <th scope="col">Attempt</th>
            <th scope="col">Began</th>
            <th scope="col" class="num">
              Took
            </th>
            <th scope="col">Error</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ at, ms, error }, index) => (
            <tr key={at + String(index)}>
              <td class="dim">{Math.max(0, (total ?? 0) - attempts.length) + first + index + 1}</td>
              <td class="mono">{clockMs(at - ms)}</td>
              <td class="num soft nowrap">{duration(ms)}</td>
              <td class="c-fail cut">
                <Icon name="s-dead" size={12} /> {visible(firstLine(error))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {first > 0 && (
        <p class="pad small">
          <button type="button" class="link" onClick={() => setAll(true)}>
            Show {plural(first, 'earlier attempt')}
          </button>
        </p>
      )}
      {last !== undefined && (
        <div class="pad stack">
          {attempts.length > 1 && (
            <p class="soft small">
              {same === attempts.length
                ? `All ${attempts.length} errors are the same.`
                : `${same} of ${attempts.length} errors are the same.`}
            </p>
          )}
          <Code text={last.error} label="the last error" wrap />
        </div>
      )}
    </>
  )
}

function firstLine(error: string): string {
  return error.split('\n', 1)[0] ?? ''
}
