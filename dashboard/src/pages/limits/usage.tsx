// Who spends a limit: calls over 15 minutes stacked by flow, the cap, the pauses, and the next slots.
import type { JSX } from 'preact'
import { Panel } from '../../components/basics.tsx'
import { second } from '../../lib/clock.ts'
import { clock, count, countdown, minuteOf, percent, plural, visible } from '../../lib/format.ts'
import type { Limit, LimitUsage } from '../../lib/types.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { causeOf } from './limit-words.ts'

const HEIGHT = 150
const TOP = 18
/** The figures of the axis stand right of the bars. */
const WIDTH = 92
const SHADES = ['sp-1', 'sp-2', 'sp-3', 'sp-4'] as const

const shadeOf = (index: number): string => SHADES[Math.min(index, SHADES.length - 1)] ?? 'sp-4'

function nameOf(flow: string): string {
  return flow === '' ? 'outside of runs' : visible(flow)
}

export function UsageChart({ usage, limit }: { usage: LimitUsage; limit: Limit }): JSX.Element {
  const { step, from, spenders, pauses } = usage
  const steps = spenders[0]?.calls.length ?? 60
  const totals = Array.from({ length: steps }, (_, index) =>
    spenders.reduce((sum, { calls }) => sum + (calls[index] ?? 0), 0),
  )
  const { rate, per } = limit
  const cap = rate === undefined || per === undefined ? undefined : (rate / per) * step
  // The cap of a slow limit is less than one call in a step, and stands at the floor.
  const most = Math.max(1, cap ?? 0, ...totals) * 1.05
  const y = (value: number): number => HEIGHT - (value / most) * (HEIGHT - TOP)
  const width = WIDTH / steps
  const end = from + steps * step
  const x = (at: number): number => Math.max(0, Math.min(WIDTH, ((at - from) / (end - from)) * WIDTH))
  const all = totals.reduce((sum, value) => sum + value, 0)
  return (
    <div class="usage">
      <h3 class="row wrap">
        Calls, each 15 s
        <span class="push row wrap legend">
          {spenders.slice(0, SHADES.length).map(({ flow }, index) => (
            <span key={flow} class="row small">
              <svg width="10" height="10" class="pic" aria-hidden="true">
                <rect class={shadeOf(index)} width="10" height="10" rx="2" />
              </svg>
              {nameOf(flow)}
            </span>
          ))}
        </span>
      </h3>
      <svg
        class="pic usage-chart"
        width="100%"
        height={HEIGHT + 22}
        role="img"
        aria-label={`${plural(all, 'call')} in 15 minutes, ${plural(pauses.length, 'pause')}`}
      >
        {pauses.map(({ at, ms }, index) =>
          at + ms <= from ? null : (
            <rect
              key={index}
              class="pause-band"
              x={`${x(at)}%`}
              width={`${Math.max(0.4, x(at + ms) - x(at))}%`}
              y={TOP}
              height={HEIGHT - TOP}
            />
          ),
        )}
        {totals.map((_, index) => {
          let below = 0
          return (
            <g key={index}>
              {spenders.map(({ flow, calls }, at) => {
                const value = calls[index] ?? 0
                if (value === 0) return null
                const top = y(below + value)
                const bottom = y(below)
                below += value
                return (
                  <rect
                    key={flow}
                    class={shadeOf(at)}
                    x={`${index * width}%`}
                    width={`${width * 0.8}%`}
                    y={top}
                    height={Math.max(1.5, bottom - top)}
                  />
                )
              })}
            </g>
          )
        })}
        <line class="bed" x1="0" x2={`${WIDTH}%`} y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
        {cap !== undefined && (
          <>
            <line class="cap-line" x1="0" x2={`${WIDTH}%`} y1={y(cap)} y2={y(cap)} />
            <text class="t-dim" x="100%" y={y(cap) + 4} text-anchor="end">
              {cap < 1 ? 'cap' : count(cap)}
            </text>
          </>
        )}
        {pauses.slice(0, 3).map((pause, index) =>
          pause.at < from ? null : (
            <text
              key={index}
              class="t-limit"
              x={`${x(pause.at)}%`}
              y="11"
              text-anchor={x(pause.at) > 50 ? 'end' : 'start'}
            >
              {`${causeOf(pause)} at ${clock(pause.at)}`}
            </text>
          ),
        )}
        {[0, 1, 2].map((third) => (
          <text
            key={third}
            class="t-dim"
            x={`${(third * WIDTH) / 3}%`}
            y={HEIGHT + 16}
            text-anchor={third === 0 ? 'start' : 'middle'}
          >
            {minuteOf(from + (third * (end - from)) / 3)}
          </text>
        ))}
        <text class="t-dim" x={`${WIDTH}%`} y={HEIGHT + 16} text-anchor="end">
          now
        </text>
      </svg>
    </div>
  )
}

const SHOWN = 8

/** Who gets the next slots, in order, on an axis that begins now. */
export function Slots({ usage, limit }: { usage: LimitUsage; limit: Limit }): JSX.Element | null {
  const now = second.value
  const slots = usage.slots.slice(0, SHOWN)
  if (slots.length === 0) return null
  const longest = Math.max(1_000, ...slots.map(({ at }) => at - now))
  const waiting = limit.waiting ?? slots.length
  return (
    <Panel title="Next slots" remark={`${plural(waiting, 'lane')} waiting`}>
      <ol class="slots">
        {slots.map(({ at, flow, key, lane }, index) => (
          <li key={`${lane} ${index}`}>
            <a class="cut" href={`lanes/${encodeURIComponent(lane)}`}>
              <b>{laneName({ flow, key })}</b>
            </a>
            <span class="dim cut wide-only">{visible(flow)}</span>
            <svg class="pic" width="100%" height="14" aria-hidden="true">
              <rect
                class="u-limit soon"
                y="4"
                width={`${Math.max(1, (Math.max(0, at - now) / longest) * 98)}%`}
                height="6"
                rx="2"
              />
            </svg>
            <span class="num nowrap">{at <= now ? 'now' : `in ${countdown(at - now)}`}</span>
          </li>
        ))}
      </ol>
      {waiting > slots.length && <footer>and {plural(waiting - slots.length, 'more lane')}</footer>}
    </Panel>
  )
}

export function Spenders({ usage: { spenders } }: { usage: LimitUsage }): JSX.Element {
  const all = spenders.reduce((sum, { total }) => sum + total, 0)
  return (
    <Panel title="Who spends it" remark={`last 15 min, ${plural(all, 'call')} of this process`}>
      {all === 0 ? (
        <p class="pad dim">No call in the last 15 minutes.</p>
      ) : (
        <table class="tight spender-table">
          <thead class="unseen-head">
            <tr>
              <th scope="col">Flow</th>
              <th scope="col" class="wide-only">
                Share
              </th>
              <th scope="col" class="num">
                Calls
              </th>
              <th scope="col" class="num">
                Part
              </th>
            </tr>
          </thead>
          <tbody>
            {spenders.map(({ flow, total }, index) => (
              <tr key={flow}>
                <td class="cut">{nameOf(flow)}</td>
                <td class="wide-only">
                  <svg class="pic" width="100%" height="10" aria-hidden="true">
                    <rect class={shadeOf(index)} width={`${(total / all) * 100}%`} height="10" rx="2" />
                  </svg>
                </td>
                <td class="num">{count(total)}</td>
                <td class="num">
                  <b>{percent(total / all)}</b>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  )
}
