// The last day of an endpoint: one mark for each half hour, coloured by what its POSTs came to.
import type { JSX } from 'preact'
import { count, minuteOf } from '../../lib/format.ts'
import type { Endpoint } from '../../lib/types.ts'

type HalfHour = NonNullable<Endpoint['lastDay']>[number]

/** Fewer failures than this share are a hiccup. */
const BAD = 0.5

export function HealthStrip({ of, height = 16 }: { of: readonly HalfHour[]; height?: number }): JSX.Element {
  const width = 100 / Math.max(1, of.length)
  const delivered = of.reduce((sum, one) => sum + one.delivered, 0)
  const failed = of.reduce((sum, one) => sum + one.failed, 0)
  return (
    <svg
      class="pic strip"
      width="100%"
      height={height}
      role="img"
      aria-label={`In the last 24 hours ${count(delivered)} POSTs were delivered and ${count(failed)} failed`}
    >
      {of.map((one, index) => (
        <rect
          key={one.at}
          class={toneOf(one)}
          x={`${index * width}%`}
          width={`${width * 0.78}%`}
          height={height}
          rx="1.5"
        >
          <title>{`${minuteOf(one.at)}: ${count(one.delivered)} delivered, ${count(one.failed)} failed`}</title>
        </rect>
      ))}
    </svg>
  )
}

function toneOf({ delivered, failed }: HalfHour): string {
  const total = delivered + failed
  if (total === 0) return 'u-none'
  if (failed === 0) return 'u-run soon'
  return failed / total < BAD ? 'u-ready' : 'u-fail'
}

/** The POSTs of each half hour: delivered ones upwards, failed ones on top. */
export function DayBars({ of }: { of: readonly HalfHour[] }): JSX.Element {
  const most = Math.max(1, ...of.map(({ delivered, failed }) => delivered + failed))
  const width = 100 / Math.max(1, of.length)
  const size = (value: number): number => (value === 0 ? 0 : Math.max(2, (value / most) * 64))
  const first = of[0]?.at ?? 0
  const middle = of[Math.floor(of.length / 2)]?.at ?? 0
  return (
    <div class="day-bars">
      <svg class="pic" width="100%" height="98" role="img" aria-label="POSTs of each half hour in the last 24 hours">
        {of.map(({ at, delivered, failed }, index) => {
          const [good, bad] = [size(delivered), size(failed)]
          return (
            <g key={at}>
              <title>{`${minuteOf(at)}: ${count(delivered)} delivered, ${count(failed)} failed`}</title>
              <rect class="u-none" x={`${index * width}%`} width={`${width * 0.78}%`} y="73" height="2" />
              <rect
                class="u-run"
                x={`${index * width}%`}
                width={`${width * 0.78}%`}
                y={75 - good}
                height={good}
                rx="1"
              />
              <rect
                class="u-fail"
                x={`${index * width}%`}
                width={`${width * 0.78}%`}
                y={75 - good - bad}
                height={bad}
                rx="1"
              />
            </g>
          )
        })}
        <text class="t-dim" x="0" y="93">
          {minuteOf(first)}
        </text>
        <text class="t-dim" x="50%" y="93" text-anchor="middle">
          {minuteOf(middle)}
        </text>
        <text class="t-dim" x="100%" y="93" text-anchor="end">
          now
        </text>
      </svg>
    </div>
  )
}
