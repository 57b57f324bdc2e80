// The picture of one lane, large: each event, each push of its gate, and what happens if nothing more or if more arrives.
import type { JSX } from 'preact'
import { Glide, useBase } from '../../components/glide.tsx'
import { MarksView } from '../../components/marks.tsx'
import { nowX, percentText, ticksOf, xOf, type Axis } from '../../lib/axis.ts'
import { second } from '../../lib/clock.ts'
import { clock, countdown, duration, visible } from '../../lib/format.ts'
import { FLOOR as ROW_FLOOR, marksOf, openedAt, TOP as ROW_TOP, type Mark } from '../../lib/lane-marks.ts'
import { labelsOf } from '../../lib/lane-words.ts'
import { sentenceOf, textOf } from '../../lib/lane-sentence.ts'
import { shownState } from '../../lib/states.ts'
import type { LaneDetail } from '../../lib/types.ts'

const FLOOR = 180
const HIGHEST = 108
const STEP = 23
/** The rows of the two futures. */
const FIRST = 196
const SECOND_ROW = 230
/** Up to so many events have a step of the same height each. */
const EVEN = 12
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const SPANS = [
  MINUTE,
  100 * SECOND,
  5 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  6 * HOUR,
  24 * HOUR,
  96 * HOUR,
]
const axes = new Map<number, Axis>()

/** The shortest axis that shows the first event and the latest time; the same length is the same axis. */
function axisFor(lane: LaneDetail, now: number): Axis {
  const until = lane.run?.until ?? lane.cap ?? lane.due ?? now
  const since = openedAt(lane) ?? lane.run?.started ?? now
  const wanted = Math.max((until - now) / 0.52, Math.min((now - since) / 0.37, 6 * HOUR))
  const span = SPANS.find((length) => length >= wanted) ?? SPANS.at(-1) ?? HOUR
  const axis = axes.get(span) ?? { span, past: 0.4, step: span / 10 }
  axes.set(span, axis)
  return axis
}

/** Where there is room for little, every third tick has a label. */
function isSparse(axis: Axis, x: number): boolean {
  return Math.round((x - nowX(axis)) / ((axis.step / axis.span) * 100)) % 3 === 0
}

export function BigPicture({ lane }: { lane: LaneDetail }): JSX.Element {
  const at = second.value
  const axis = axisFor(lane, at)
  const base = useBase(axis, at)
  const { due, cap, run } = lane
  const hasFutures = run === undefined && due !== undefined && due > at && lane.hold === undefined
  const hasSecond = hasFutures && cap !== undefined && cap > due
  const height = hasFutures ? (hasSecond ? 266 : 232) : 196
  return (
    <div class="big-picture" role="img" aria-label={textOf(sentenceOf(lane, at))}>
      <svg class="pic" width="100%" height={height} aria-hidden="true">
        <rect class="was" width={percentText(nowX(axis))} height={height} />
        {ticksOf(axis).map(({ x, text }) => (
          <g key={x} class={isSparse(axis, x) ? '' : 'wide-only'}>
            <line class="grid" x1={percentText(x)} x2={percentText(x)} y1="26" y2={FLOOR} />
            <text class="t-dim" x={percentText(x)} y="17" text-anchor={x < 2 ? 'start' : 'middle'} dx={x < 2 ? 6 : 0}>
              {text}
            </text>
          </g>
        ))}
        <line class="bed" x1="0" x2="100%" y1={FLOOR + 0.5} y2={FLOOR + 0.5} />
      </svg>
      <Glide
        axis={axis}
        base={base}
        past={<Scene lane={lane} axis={axis} base={base} height={height} layer="past" />}
        ahead={
          <>
            <Scene lane={lane} axis={axis} base={base} height={height} layer="ahead" at={at} />
            {hasFutures && (
              <svg class="pic film-labels" width="100%" height={height}>
                <Future lane={lane} end={due} axis={axis} base={base} at={at} y={FIRST} />
                {hasSecond && <Future lane={lane} end={cap} axis={axis} base={base} at={at} y={SECOND_ROW} isLong />}
              </svg>
            )}
          </>
        }
      >
        <svg class="pic" width="100%" height={height}>
          {shownState(lane) === 'blocked' && (
            <rect
              class="wall"
              x={percentText(nowX(axis))}
              y="60"
              width="8"
              height={FLOOR - 60}
              transform="translate(-4 0)"
            />
          )}
          {hasFutures && <FutureTitle y={FIRST} text="If nothing more arrives" short="If none arrives" />}
          {hasSecond && <FutureTitle y={SECOND_ROW} text="If events keep arriving" short="If more arrive" />}
          <line class="now" x1={percentText(nowX(axis))} x2={percentText(nowX(axis))} y1="0" y2={height} />
          <svg x={percentText(nowX(axis))} width="1" height="1" overflow="visible">
            <rect class="now-pill" x="-34" y="3" width="68" height="20" rx="10" />
            <text class="now-text" y="17" text-anchor="middle">
              {clock(at)}
            </text>
          </svg>
        </svg>
      </Glide>
    </div>
  )
}

interface SceneProps {
  lane: LaneDetail
  axis: Axis
  base: number
  height: number
  layer: 'past' | 'ahead'
  at?: number
}

/** The marks of a row, stretched, with drops that have numbers, ghosts of the gate, and words beside it. */
function Scene({ lane, axis, base, height, layer, at = 0 }: SceneProps): JSX.Element {
  const x = (time: number): string => percentText(Math.max(-20, Math.min(170, xOf(axis, time, base))))
  const all = marksOf(lane)[layer]
  const marks = all.filter((mark) => mark.is !== 'drop' && mark.is !== 'gate').map(stretched)
  const gates = all.filter((mark) => mark.is === 'gate')
  const arrivals = (lane.arrivals ?? []).filter(({ inRun }) => !inRun)
  const isNumbered = lane.run === undefined && arrivals.length <= EVEN && lane.waiting <= EVEN
  const { beside } = labelsOf(lane, at)
  return (
    <svg class="pic" width="100%" height={height}>
      {isNumbered ? (
        <>
          <MarksView
            marks={marks.filter((mark) => !/^(water|surface)/.test(mark.class))}
            axis={axis}
            base={base}
            height={height}
          />
          <NumberedWater lane={lane} x={x} layer={layer} />
        </>
      ) : (
        <MarksView marks={marks} axis={axis} base={base} height={height} />
      )}
      {lane.run === undefined && <Ghosts lane={lane} x={x} />}
      {gates.map((mark, index) => (
        <BigGate
          key={index}
          x={x(mark.at)}
          name={mark.post === true ? 'cap' : `gate ${mark.tone}`}
          isPost={mark.post}
        />
      ))}
      {layer === 'ahead' && beside !== undefined && (
        <svg x={x(beside.at)} width="1" height="1" overflow="visible">
          <text class={`t-${beside.tone} gate-time halo`} x="14" y="76">
            {countdown(beside.at - at)}
          </text>
          <text class="t-dim halo wide-only" x="14" y="92">
            {underGate(lane)}
          </text>
        </svg>
      )}
      {layer === 'ahead' && lane.run === undefined && lane.cap !== undefined && lane.cap > (lane.due ?? Infinity) && (
        <svg x={x(lane.cap)} width="1" height="1" overflow="visible">
          <text class="t-wait t-strong halo wide-only" x="-9" y="92" text-anchor="end">
            latest {clock(lane.cap)}
          </text>
          {lane.flowOptions?.window?.max !== undefined && (
            <text class="t-dim halo wide-only" x="-9" y="107" text-anchor="end">
              {duration(lane.flowOptions.window.max)} after event 1
            </text>
          )}
        </svg>
      )}
    </svg>
  )
}

/** A row is 38 px high with its floor at 32; here the floor is at 180 and the channel 108 px high. */
const scale = (y: number): number => FLOOR - ((ROW_FLOOR - y) / (ROW_FLOOR - ROW_TOP)) * HIGHEST

type Stretched = Exclude<Mark, { is: 'drop' | 'gate' }>

function stretched(mark: Stretched): Stretched {
  switch (mark.is) {
    case 'bar':
      return { ...mark, y: scale(mark.y), height: scale(mark.y + mark.height) - scale(mark.y) }
    case 'rise':
      return { ...mark, y: scale(mark.y), to: scale(mark.to) }
    case 'line':
    case 'text':
      return { ...mark, y: scale(mark.y) }
  }
}

function underGate(lane: LaneDetail): string {
  const quiet = lane.flowOptions?.window?.quiet
  const state = shownState(lane)
  if (state === 'waiting' && quiet !== undefined && quiet > 0)
    return `${duration(quiet)} after event ${lane.arrivals?.filter(({ inRun }) => !inRun).length === lane.waiting ? lane.waiting : 'the last'}`
  if (state === 'running') return 'the lease ends, unless it is renewed'
  if (state === 'limited') return `slot of ${visible(lane.deferredBy ?? 'the limit')}`
  if (state === 'retrying') return `attempt ${(lane.run?.tries ?? 0) + 1}`
  return ''
}

/** Even steps: each event is as high as the others. */
function NumberedWater(props: { lane: LaneDetail; x: (at: number) => string; layer: 'past' | 'ahead' }): JSX.Element {
  const { lane, x, layer } = props
  const times = (lane.arrivals ?? []).filter(({ inRun }) => !inRun).map(({ at }) => at)
  const step = Math.min(STEP, HIGHEST / Math.max(1, times.length))
  const end = lane.due ?? Infinity
  const isAhead = layer === 'ahead'
  const level = (index: number): number => FLOOR - step * (index + 1)
  const last = times.length - 1
  if (isAhead && lane.state === 'blocked') return <g />
  return (
    <>
      {times.map((time, index) => {
        const to = x(times[index + 1] ?? end)
        const width = `${Math.max(0, Number.parseFloat(to) - Number.parseFloat(x(time)))}%`
        if (isAhead && index < last) return null
        const kind = isAhead ? ' to-come' : ''
        return (
          <g key={index}>
            <rect class={`water${kind}`} x={x(time)} width={width} y={level(index)} height={step * (index + 1)} />
            <line class={`surface${kind}`} x1={x(time)} x2={to} y1={level(index)} y2={level(index)} />
            {!isAhead && <line class="surface" x1={x(time)} x2={x(time)} y1={level(index)} y2={level(index) + step} />}
          </g>
        )
      })}
      {!isAhead &&
        times.map((time, index) => (
          <svg key={index} x={x(time)} width="1" height="1" overflow="visible">
            <circle class="drop big" cy={level(index)} r="9" />
            <text class="t-on" y={level(index) + 4} text-anchor="middle">
              {index + 1}
            </text>
          </svg>
        ))}
    </>
  )
}

/** Where the gate stood after each event, and its hops to where it is now. */
function Ghosts({ lane, x }: { lane: LaneDetail; x: (at: number) => string }): JSX.Element | null {
  const quiet = lane.flowOptions?.window?.quiet
  const times = (lane.arrivals ?? []).filter(({ inRun }) => !inRun).map(({ at }) => at)
  if (quiet === undefined || quiet === 0 || lane.due === undefined || times.length !== lane.waiting) return null
  const due = lane.due
  const stood = times.slice(0, -1).map((time) => Math.min(time + quiet, due))
  // Events that come together would only draw the same ghost again.
  const ghosts = stood.filter((time, index) => due - time > 200 && time - (stood[index - 1] ?? 0) > 200)
  if (ghosts.length === 0) return null
  return (
    <>
      {ghosts.map((time, index) => {
        const next = ghosts[index + 1] ?? due
        const width = Math.max(0, Number.parseFloat(x(next)) - Number.parseFloat(x(time)))
        return (
          <g key={time}>
            <svg x={x(time)} width="1" height="1" overflow="visible">
              <rect class="ghost" x="-2.5" y="56" width="5" height={FLOOR - 56} rx="2" />
            </svg>
            <svg x={x(time)} y="34" width={`${width}%`} height="20" viewBox="0 0 100 20" preserveAspectRatio="none">
              <path class="hop" d="M0 19C20 2 80 2 100 19" vector-effect="non-scaling-stroke" />
            </svg>
            <svg x={x(next)} width="1" height="1" overflow="visible">
              <path class="hop" d="M-6-1l6 2.5.5-6.5" transform="translate(0 51)" />
            </svg>
          </g>
        )
      })}
      <text class="t-dim halo push-note wide-only" x={x(ghosts[0] ?? due)} dx="-8" y="46">
        pushed by each event
      </text>
    </>
  )
}

function BigGate({ x, name, isPost = false }: { x: string; name: string; isPost?: boolean | undefined }): JSX.Element {
  return (
    <svg x={x} width="1" height="1" overflow="visible">
      {isPost ? (
        <>
          <rect class={name} x="-1.5" y="78" width="3" height={FLOOR - 78} />
          <rect class={name} x="-9" y="76" width="18" height="4" rx="2" />
        </>
      ) : (
        <>
          <rect class={name} x="-3.5" y="48" width="7" height={FLOOR - 48} rx="2" />
          <rect class={name} x="-13" y="45" width="26" height="6" rx="3" />
        </>
      )}
    </svg>
  )
}

/** Two futures below the picture: when the lane runs if nothing more arrives, and if events keep arriving. */
function FutureTitle({ y, text, short }: { y: number; text: string; short: string }): JSX.Element {
  return (
    <svg x="40%" width="1" height="1" overflow="visible">
      <text class="t-strong wide-only" x="-14" y={y + 16} text-anchor="end">
        {text}
      </text>
      <text class="t-strong narrow-only" x="-10" y={y + 16} text-anchor="end">
        {short}
      </text>
    </svg>
  )
}

interface FutureProps {
  lane: LaneDetail
  end: number
  axis: Axis
  base: number
  at: number
  y: number
  isLong?: boolean
}

/** One possible future: its gate and the run after it. Estimates are dashed and say "about". */
function Future({ lane, end, axis, base, at, y, isLong = false }: FutureProps): JSX.Element {
  const x = (time: number): number => Math.min(150, xOf(axis, time, base))
  const run = lane.medianRunMs
  const until = run === undefined ? end : end + run
  const isLate = xOf(axis, until, at) > 84
  return (
    <>
      <rect class="water to-come" width={percentText(x(end))} y={y} height="23" />
      {isLong && xOf(axis, end, at) - nowX(axis) > 24 && (
        <text class="t-wait wide-only" x={percentText(x((at + end) / 2))} y={y + 16} text-anchor="middle">
          one window, and all of them in one run
        </text>
      )}
      {run !== undefined && (
        <rect
          class="maybe run"
          x={percentText(x(end) + 0.4)}
          width={percentText(Math.max(1.6, x(until) - x(end)))}
          y={y}
          height="23"
          rx="3"
        />
      )}
      <svg x={percentText(x(end))} width="1" height="1" overflow="visible">
        <rect class="gate" x="-2" y={y - 2} width="4" height="27" rx="1.5" />
      </svg>
      <svg
        x={percentText(isLate ? x(end) : Math.max(x(until), x(end) + (run === undefined ? 0 : 2)))}
        width="1"
        height="1"
        overflow="visible"
      >
        <text class="t-dim halo" x={isLate ? -9 : 8} y={y + 16} text-anchor={isLate ? 'end' : 'start'}>
          {run === undefined ? `runs at ${clock(end)}` : `done at about ${clock(until)}`}
        </text>
      </svg>
    </>
  )
}
