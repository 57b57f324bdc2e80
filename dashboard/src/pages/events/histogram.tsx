// Events by time. A bar leads to the events of its half hour.
import type { JSX } from 'preact'
import { address } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, plural, when } from '../../lib/format.ts'
import { useResource } from '../../state/resource.ts'
import { withQuery } from '../../state/router.ts'

interface Counts {
  readonly step: number
  readonly from: number
  readonly counts: readonly number[]
  readonly complete: boolean
}

const HEIGHT = 44

export function Histogram({ filter }: { filter: Readonly<Record<string, string>> }): JSX.Element | null {
  const { q = '', from = '', to = '', ...rest } = filter
  // A search for text reads page by page, so the distribution of its results is unknown.
  const path = q === '' && from === '' && to === '' ? address('events/histogram', { ...rest, step: '30m' }) : undefined
  const { data } = useResource<Counts>(path, { every: 30_000 })
  if (path === undefined || data === undefined || data.counts.every((value) => value === 0)) return null
  const most = Math.max(1, ...data.counts)
  const width = 100 / data.counts.length
  const now = second.value
  return (
    <section class="panel histogram" aria-label="Events by time">
      <svg class="pic" width="100%" height={HEIGHT + 18} role="group" aria-label="Events of each half hour">
        {data.counts.map((value, index) => {
          const at = data.from + index * data.step
          const height = value === 0 ? 0 : Math.max(2, (value / most) * HEIGHT)
          return value === 0 ? null : (
            <a
              key={index}
              href={withQuery({ from: String(at), to: String(at + data.step) })}
              aria-label={`${plural(value, 'event')} from ${when(at, now)}`}
            >
              <title>{`${plural(value, 'event')} from ${when(at, now)}`}</title>
              <rect class="hit" x={`${index * width}%`} width={`${width}%`} height={HEIGHT} />
              <rect
                class="u-wait"
                x={`${index * width + width * 0.1}%`}
                width={`${width * 0.8}%`}
                y={HEIGHT - height}
                height={height}
                rx="1"
              />
            </a>
          )
        })}
        <line class="bed" x1="0" x2="100%" y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
        <text class="t-dim" x="0" y={HEIGHT + 14}>
          {when(data.from, now)}
        </text>
        <text class="t-dim" x="100%" y={HEIGHT + 14} text-anchor="end">
          now
        </text>
      </svg>
      <span class="small dim">
        {data.complete ? '' : 'at least '}
        {count(data.counts.reduce((sum, value) => sum + value, 0))} events
      </span>
    </section>
  )
}
