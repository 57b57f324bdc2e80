// The first row: all lanes together. Runs that ended each second, and lanes that come due each second.
import type { JSX } from 'preact'
import { Icon } from '../../components/icon.tsx'
import { nowX, percentText, type Axis } from '../../lib/axis.ts'
import { count, plural } from '../../lib/format.ts'
import { VERDICT_LOOKS } from '../../lib/states.ts'
import type { Pulse, Status } from '../../lib/types.ts'

const FLOOR = 46
const HIGHEST = 27

interface AllLanesProps {
  axis: Axis
  pulse: Pulse | undefined
  status: Status | undefined
}

export function AllLanes({ axis, pulse, status }: AllLanesProps): JSX.Element {
  const ended = pulse?.past.ended ?? []
  const failed = pulse?.past.failed ?? []
  const due = pulse?.ahead.due ?? []
  const most = Math.max(1, ...ended, ...due)
  const height = (value: number): number => (value === 0 ? 0 : Math.max(2, Math.sqrt(value / most) * HIGHEST))
  const width = (1_000 / axis.span) * 100
  const perSecond = total(ended) / Math.max(1, ended.length)
  const look = status === undefined ? undefined : VERDICT_LOOKS[status.verdict]
  return (
    <div class="lane lanes-all">
      <span class="who">
        <Icon name="lanes" size={14} tone="still" />
        <b>All lanes</b>
        <span>behind and ahead</span>
      </span>
      <svg
        class="pic"
        width="100%"
        height="52"
        role="img"
        aria-label={`In the last minute ${plural(total(ended), 'run')} ended and ${count(total(failed))} of them failed. In the next minute ${plural(total(due), 'lane comes', 'lanes come')} due.`}
      >
        <rect class="was" width={percentText(nowX(axis))} height="52" />
        {ended.map((value, index) => {
          const x = nowX(axis) - (ended.length - index) * width
          const bad = Math.min(failed[index] ?? 0, value)
          const all = height(value)
          const red = bad === 0 ? 0 : Math.max(2, (all * bad) / value)
          return value === 0 || x < -width ? null : (
            <g key={index}>
              <rect
                class="u-run"
                x={percentText(x + width * 0.12)}
                width={percentText(width * 0.76)}
                y={FLOOR - all + red}
                height={Math.max(0, all - red)}
              />
              {red > 0 && (
                <rect
                  class="u-fail"
                  x={percentText(x + width * 0.12)}
                  width={percentText(width * 0.76)}
                  y={FLOOR - all}
                  height={red}
                />
              )}
            </g>
          )
        })}
        {due.map((value, index) =>
          value === 0 ? null : (
            <rect
              key={index}
              class={`u-wait${index === 0 ? '' : ' soon'}`}
              x={percentText(nowX(axis) + index * width + width * 0.12)}
              width={percentText(width * 0.76)}
              y={FLOOR - height(value)}
              height={height(value)}
            />
          ),
        )}
        <line class="bed" x1="0" x2="100%" y1="46.5" y2="46.5" />
        <line class="now" x1={percentText(nowX(axis))} x2={percentText(nowX(axis))} y1="0" y2="52" />
        <text class="t-dim halo wide-only" x="6" y="14">
          runs that ended, each second
        </text>
        <text class="t-dim halo wide-only" x="100%" dx="-10" y="14" text-anchor="end">
          lanes that come due, each second
        </text>
      </svg>
      <span class="n">{status === undefined ? '' : count(status.lanes.events)}</span>
      <span class="next">
        {look !== undefined && <b class={look.tone === 'run' ? '' : `c-${look.tone}`}>{look.word}</b>}
        {pulse !== undefined && <span class="cut">{rateText(perSecond)}</span>}
      </span>
    </div>
  )
}

function rateText(perSecond: number): string {
  if (perSecond === 0) return 'no run ended in the last minute'
  if (perSecond < 1) return `${plural(perSecond * 60, 'run ends', 'runs end')} a minute`
  return `${plural(perSecond, 'run ends', 'runs end')} a second`
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}
