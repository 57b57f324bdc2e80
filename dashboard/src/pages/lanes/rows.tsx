// The rows of the lane picture. Names and words stand still; the marks of all rows glide together in one film.
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Glide, useBase } from '../../components/glide.tsx'
import { Icon } from '../../components/icon.tsx'
import { MarksView } from '../../components/marks.tsx'
import { nowX, percentText, ticksOf, xOf, type Axis } from '../../lib/axis.ts'
import { second } from '../../lib/clock.ts'
import { clock, count, visible } from '../../lib/format.ts'
import { marksOf, withNews, type SeenRun } from '../../lib/lane-marks.ts'
import { labelsOf, nextOf, type Labels } from '../../lib/lane-words.ts'
import { LANE_LOOKS, shownState } from '../../lib/states.ts'
import type { Lane, Pulse, Status } from '../../lib/types.ts'
import { copy } from '../../components/basics.tsx'
import { focusActs } from '../../state/acts.ts'
import { laneName } from '../../state/endpoint-names.ts'
import { useGradual } from '../../state/gradual.ts'
import { useKeys } from '../../state/keyboard.ts'
import { go, place, setQuery, withQuery } from '../../state/router.ts'
import { AllLanes } from './all-lanes.tsx'
import { OpenRow, useLaneActs } from './open-row.tsx'

const ROW = 38
const NO_RUNS: readonly SeenRun[] = []

interface RowsProps {
  lanes: readonly Lane[]
  content: string | undefined
  seen: ReadonlyMap<string, readonly SeenRun[]>
  axis: Axis
  pulse: Pulse | undefined
  status: Status | undefined
  stoppedAt: number | undefined
  onHover: (isOver: boolean) => void
  onChanged: () => void
}

export function LaneRows(props: RowsProps): JSX.Element {
  const { seen, axis, pulse, status, stoppedAt, onHover, onChanged } = props
  const lanes = props.lanes.slice(0, useGradual(props.lanes.length, props.content))
  const at = stoppedAt ?? second.value
  const base = useBase(axis, at)
  const openId = place.value.query['open']
  const open = lanes.findIndex(({ id }) => id === openId)
  const [gap, setGap] = useState(0)
  const flows = new Map(status?.flows.map((flow) => [flow.flow, flow]))
  const choose = (index: number): void => {
    const lane = lanes[Math.max(0, Math.min(lanes.length - 1, index))]
    if (lane === undefined) return
    setQuery({ open: lane.id }, { replace: true })
    const element = document.querySelector(`[data-lane="${lane.id}"]`)
    element?.querySelector('a')?.focus({ preventScroll: true })
    element?.scrollIntoView({ block: 'nearest' })
  }
  const chosen = lanes[open]
  const acts = useLaneActs(chosen, onChanged)
  useKeys({
    j: () => choose(open + 1),
    k: () => choose(open === -1 ? 0 : open - 1),
    '.': () => {
      choose(Math.max(0, open))
      focusActs()
    },
    Enter: () => chosen !== undefined && go(`lanes/${chosen.id}`),
    Escape: () => setQuery({ open: undefined }, { replace: true }),
    r: () => acts.runNow(),
    h: () => acts.hold(),
    c: () => chosen !== undefined && void copy(chosen.id),
  })
  const rowsOf = (layer: 'past' | 'ahead'): JSX.Element[] =>
    lanes.map((lane, index) => (
      <div key={lane.id} class="film-row">
        <RowMarks lane={lane} seen={seen.get(lane.id) ?? NO_RUNS} layer={layer} axis={axis} base={base} />
        {index === open && gap > 0 && <svg class="film-gap" width="1" height={gap} />}
      </div>
    ))
  return (
    <div class={stoppedAt === undefined ? 'lanes' : 'lanes stopped'}>
      <div class="lanes-head">
        <span>Lane</span>
        <AxisHead axis={axis} at={at} />
        <span class="num">Events</span>
        <span>Next</span>
      </div>
      <AllLanes axis={axis} pulse={pulse} status={status} />
      <div class="lanes-body" onPointerEnter={() => onHover(true)} onPointerLeave={() => onHover(false)}>
        <svg class="pic lanes-ground" width="100%" height="100%" aria-hidden="true">
          <rect class="was" width={percentText(nowX(axis))} height="100%" />
          {ticksOf(axis).map(({ x }) => (
            <line key={x} class="grid" x1={percentText(x)} x2={percentText(x)} y1="0" y2="100%" />
          ))}
        </svg>
        {lanes.map((lane, index) => (
          <div key={lane.id} class={`lane-row${index === open ? ' chosen' : ''}`} data-lane={lane.id}>
            <Row lane={lane} at={at} flow={flows.get(lane.flow)} isOpen={index === open} />
            {index === open && (
              <Measured onHeight={setGap}>
                <OpenRow lane={lane} at={at} flow={flows.get(lane.flow)} acts={acts} />
              </Measured>
            )}
          </div>
        ))}
        <Glide
          axis={axis}
          base={base}
          stoppedAt={stoppedAt}
          class="lanes-film"
          past={rowsOf('past')}
          ahead={
            <>
              {lanes.map((lane, index) => (
                <div key={lane.id} class="film-row">
                  <RowMarks lane={lane} seen={NO_RUNS} layer="ahead" axis={axis} base={base} />
                  <GateLabels labels={labelsOf(lane, at)} axis={axis} base={base} />
                  {index === open && gap > 0 && <svg class="film-gap" width="1" height={gap} />}
                </div>
              ))}
            </>
          }
        >
          {lanes.map((lane, index) => (
            <div key={lane.id} class="film-row">
              <StillLabels labels={labelsOf(lane, at)} axis={axis} at={at} isWall={shownState(lane) === 'blocked'} />
              {index === open && gap > 0 && <svg class="film-gap" width="1" height={gap} />}
            </div>
          ))}
          <i class="now-line" />
        </Glide>
      </div>
    </div>
  )
}

function AxisHead({ axis, at }: { axis: Axis; at: number }): JSX.Element {
  return (
    <svg class="pic" width="100%" height="36" aria-hidden="true">
      <rect class="was" width={percentText(nowX(axis))} height="36" />
      {ticksOf(axis).map(({ x, text }) => (
        <text
          key={x}
          class="t-dim"
          x={percentText(x)}
          dx={x < 1 ? 6 : 0}
          y="27"
          text-anchor={x < 1 ? 'start' : 'middle'}
        >
          {text}
        </text>
      ))}
      <svg x={percentText(nowX(axis))} width="1" height="1" overflow="visible">
        <rect class="now-pill" x="-34" y="12" width="68" height="20" rx="10" />
        <text class="now-text" y="26" text-anchor="middle">
          {clock(at)}
        </text>
      </svg>
    </svg>
  )
}

interface RowProps {
  lane: Lane
  at: number
  flow: Status['flows'][number] | undefined
  isOpen: boolean
}

function Row({ lane, at, flow, isOpen }: RowProps): JSX.Element {
  const look = LANE_LOOKS[shownState(lane)]
  const next = nextOf(lane, at, flow)
  return (
    <a
      class="lane"
      href={`lanes/${lane.id}`}
      aria-expanded={isOpen}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        // A second click, or Enter on an open row, opens the page of the lane.
        if (isOpen) return
        event.preventDefault()
        go(withQuery({ open: lane.id }), { replace: true })
      }}
    >
      <span class="who">
        <Icon name={look.icon} size={14} tone={look.tone} />
        <b class="cut">{laneName(lane)}</b>
        <span class="cut">{visible(lane.flow)}</span>
      </span>
      <span class="pic-room" />
      <span class="n">{count(lane.waiting)}</span>
      <span class="next">
        <span class="unseen">{look.word}.</span>
        <b class={`cut c-${look.tone}`}>{next.text}</b>
        <span class="cut">{next.detail}</span>
      </span>
    </a>
  )
}

interface RowMarksProps {
  lane: Lane
  seen: readonly SeenRun[]
  layer: 'past' | 'ahead'
  axis: Axis
  base: number
}

function RowMarks({ lane, seen, layer, axis, base }: RowMarksProps): JSX.Element {
  const before = useRef(lane)
  // Most rows stay the same from one second to the next.
  return useMemo(() => {
    const marks = marksOf(lane, seen)[layer]
    const moving = layer === 'past' ? withNews(marks, before.current, lane) : marks
    before.current = lane
    return <MarksView marks={moving} axis={axis} base={base} height={ROW} />
  }, [lane, seen, axis, base])
}

/** The time of the next gate glides with it. */
function GateLabels({ labels, axis, base }: { labels: Labels; axis: Axis; base: number }): JSX.Element | null {
  const { beside, latest } = labels
  if (beside === undefined && latest === undefined) return null
  return (
    <svg class="pic film-labels" width="100%" height={ROW}>
      {beside !== undefined && (
        <text class={`t-${beside.tone} t-strong halo`} x={percentText(xOf(axis, beside.at, base))} dx="9" y="14">
          {beside.text}
        </text>
      )}
      {latest !== undefined && (
        <text class="t-dim halo" x={percentText(xOf(axis, latest.at, base))} dx="8" y="29">
          {latest.text}
        </text>
      )}
    </svg>
  )
}

/** What lies beyond the axis is an arrow and its time at the right edge; what is true now stands right of the now line. */
function StillLabels(props: { labels: Labels; axis: Axis; at: number; isWall: boolean }): JSX.Element {
  const { labels, axis, at, isWall } = props
  const { atNow, beside } = labels
  const isBeyond = beside !== undefined && xOf(axis, beside.at, at) > 96
  return (
    <svg class="pic" width="100%" height={ROW}>
      <line class="bed" x1="0" x2="100%" y1="32.5" y2="32.5" />
      {isWall && (
        <rect class="wall" x={percentText(nowX(axis))} y="8" width="6" height="24" transform="translate(-3 0)" />
      )}
      {atNow !== undefined && (
        <text class={`t-${atNow.tone} halo`} x={percentText(nowX(axis))} dx="10" y="24">
          {atNow.text}
        </text>
      )}
      {isBeyond && (
        <svg x="100%" width="1" height="1" overflow="visible">
          <text class={`t-${beside.tone} t-strong halo`} x="-20" y="24" text-anchor="end">
            {beside.text}
          </text>
          <path class={`edge ${beside.tone}`} d="M-13 15.5l4.5 4.5-4.5 4.5" />
        </svg>
      )}
    </svg>
  )
}

/** Reports its height, so that the film leaves the same room. */
function Measured({ onHeight, children }: { onHeight: (height: number) => void; children: JSX.Element }): JSX.Element {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const observer = new ResizeObserver(() => onHeight(element.current?.offsetHeight ?? 0))
    if (element.current !== null) observer.observe(element.current)
    return () => {
      observer.disconnect()
      onHeight(0)
    }
  }, [])
  return <div ref={element}>{children}</div>
}
