// The secrets of an endpoint on one time axis: during a rotation, both sign.
import type { JSX } from 'preact'
import { second } from '../../lib/clock.ts'
import { when } from '../../lib/format.ts'
import type { Endpoint } from '../../lib/types.ts'

type Times = NonNullable<Endpoint['secrets']>

const ROW = 24
const BAR = 16
const HOUR = 3_600_000
/** The part of the axis before the newest secret began, and after the last one ends. */
const MARGIN = 6 * HOUR

export function SecretTimes({ of }: { of: Times }): JSX.Element | null {
  const now = second.value
  const [newest, before] = of
  if (newest === undefined) return null
  if (before?.until === undefined) {
    return <p class="soft small secret-line">One secret signs, since {when(newest.since, now)}.</p>
  }
  const [from, to] = [Math.min(newest.since, now) - MARGIN, before.until + MARGIN]
  const x = (at: number): number => Math.max(0, Math.min(100, ((at - from) / (to - from)) * 100))
  const rows = [
    {
      word: 'before',
      since: before.since,
      until: before.until,
      text: `until ${when(before.until, now)}`,
      tone: 'soon',
    },
    { word: 'new', since: newest.since, until: to, text: `since ${when(newest.since, now)}`, tone: '' },
  ]
  return (
    <div class="secret-times">
      <dl>
        {rows.map(({ word, text }) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <svg class="pic" width="100%" height={ROW * rows.length} aria-hidden="true">
        {rows.map(({ word, since, until, tone }, index) => (
          <rect
            key={word}
            class={`u-run ${tone}`}
            x={`${x(since)}%`}
            width={`${x(until) - x(since)}%`}
            y={index * ROW + (ROW - BAR) / 2}
            height={BAR}
            rx="3"
          />
        ))}
        <line class="now" x1={`${x(now)}%`} x2={`${x(now)}%`} y1="0" y2={ROW * rows.length} />
      </svg>
      <p class="small dim">Every batch carries both signatures until then.</p>
    </div>
  )
}
