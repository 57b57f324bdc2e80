// The life of an event on a logarithmic axis: its request, its duplicates, and each lane until the end.
import type { ComponentChildren, JSX } from 'preact'
import { Panel } from '../../components/basics.tsx'
import { percentText } from '../../lib/axis.ts'
import { second } from '../../lib/clock.ts'
import { countdown, duration, plural, visible } from '../../lib/format.ts'
import type { EventDetail } from '../../lib/types.ts'
import type { LaneLife } from './outcome.ts'

const NOW = 92
const TICKS = [10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000, 864_000_000]
const LEAST = 10

type X = (at: number) => number

/** Each decade is as long as the others, from a millisecond after the arrival until now. */
function axisOf(arrived: number, now: number): X {
  const decades = Math.log10(Math.max(1_000, now - arrived))
  return (at) => (Math.log10(Math.max(1, at - arrived)) / decades) * NOW
}

export function Life({ event, lives }: { event: EventDetail; lives: readonly LaneLife[] }): JSX.Element {
  const now = second.value
  const x = axisOf(event.arrived, now)
  return (
    <Panel
      title="Its life"
      remark="time since it arrived; each step is ten times the one before"
      controls={
        <span class="row small wide-only">
          <span class="key-line block wait">window</span>
          <span class="key-line block ready">ready</span>
          <span class="key-line block run">run</span>
          <span class="key-line block fail">failed</span>
        </span>
      }
    >
      <div class="life">
        <div class="axis-row">
          <span>Where</span>
          <svg class="pic" width="100%" height="30" aria-hidden="true">
            <rect class="was" width={`${NOW}%`} height="30" />
            {TICKS.filter((time) => x(event.arrived + time) < NOW - 8).map((time) => (
              <text key={time} class="t-dim" x={percentText(x(event.arrived + time))} y="19" text-anchor="middle">
                {duration(time)}
              </text>
            ))}
            <svg x={`${NOW}%`} width="1" height="1" overflow="visible">
              <rect class="now-pill" x="-32" y="5" width="64" height="20" rx="10" />
              <text class="now-text" y="19" text-anchor="middle">
                {countdown(now - event.arrived)}
              </text>
            </svg>
          </svg>
          <span>How it ended</span>
        </div>
        <RequestRow event={event} x={x} />
        {event.receipts.length > 0 && <Receipts event={event} x={x} />}
        {lives.map((life) => (
          <LaneRow key={life.id} event={event} life={life} x={x} now={now} />
        ))}
      </div>
    </Panel>
  )
}

interface RowProps {
  title: string
  href?: string
  text: string
  label: string
  ending: string
  tone?: string
  detail: string
  x: X
  arrived: number
  children: ComponentChildren
}

function Row({ title, href, text, label, ending, tone, detail, x, arrived, children }: RowProps): JSX.Element {
  return (
    <div class="life-row">
      <div class="who">
        {href === undefined ? (
          <b class="cut">{title}</b>
        ) : (
          <a class="cut" href={href}>
            <b>{title}</b>
          </a>
        )}
        <span class="cut">{text}</span>
      </div>
      <svg class="pic" width="100%" height="38" role="img" aria-label={label}>
        <rect class="was" width={`${NOW}%`} height="38" />
        {TICKS.filter((time) => x(arrived + time) < NOW - 1).map((time) => (
          <line
            key={time}
            class="grid"
            x1={percentText(x(arrived + time))}
            x2={percentText(x(arrived + time))}
            y1="0"
            y2="38"
          />
        ))}
        <line class="bed" x1="0" x2="100%" y1="32.5" y2="32.5" />
        {children}
        <line class="now" x1={`${NOW}%`} x2={`${NOW}%`} y1="0" y2="38" />
      </svg>
      <div class="end">
        <b class={`cut${tone === undefined ? '' : ` c-${tone}`}`}>{ending}</b>
        <span class="cut">{detail}</span>
      </div>
    </div>
  )
}

function RequestRow({ event, x }: { event: EventDetail; x: X }): JSX.Element {
  const { request, arrived } = event
  const ending = request === undefined ? 'Stored' : 'Stored and accepted'
  return (
    <Row
      title={request === undefined ? 'Published' : 'Request'}
      text={request === undefined ? 'by code, in publish()' : `${request.method} ${visible(request.url)}`}
      label={ending}
      ending={ending}
      tone="run"
      detail="safe on disk before the answer"
      x={x}
      arrived={arrived}
    >
      <rect class="running" width={LEAST} y="8" height="24" rx="2" />
      <text class="t-dim halo wide-only" x={LEAST + 8} y="24">
        {request === undefined ? 'stored' : 'verified, stored, answered'}
      </text>
    </Row>
  )
}

function Receipts({ event, x }: { event: EventDetail; x: X }): JSX.Element {
  const { receipts, arrived } = event
  const conflicts = receipts.filter(({ kind }) => kind === 'conflict').length
  const last = receipts.at(-1)
  return (
    <Row
      title="Sent again"
      text={plural(receipts.length, 'time')}
      label={`Sent again after ${receipts.map(({ at }) => duration(at - arrived)).join(', ')}`}
      ending={conflicts > 0 ? plural(conflicts, 'conflict') : 'Kept out'}
      {...(conflicts > 0 && { tone: 'ready' })}
      detail={
        conflicts > 0 ? 'same identity, different bytes' : `${plural(receipts.length, 'duplicate')}, no second run`
      }
      x={x}
      arrived={arrived}
    >
      {receipts.map(({ at, kind }, index) => (
        <circle
          key={index}
          class={kind === 'conflict' ? 'drop conflict' : 'drop'}
          cx={percentText(x(at))}
          cy="20"
          r="4.5"
        />
      ))}
      {last === undefined ? null : (
        <text class="t-dim halo wide-only" x={percentText(x(last.at))} dx="12" y="24">
          {last.kind === 'conflict' ? 'same id, other bytes' : 'same id, same bytes'}
        </text>
      )}
    </Row>
  )
}

function LaneRow(props: { event: EventDetail; life: LaneLife; x: X; now: number }): JSX.Element {
  const { event, life, x, now } = props
  const start = x(event.arrived + 2)
  const isWaiting = life.started === undefined
  const due =
    life.due === undefined || (life.started !== undefined && life.due > life.started) ? life.started : life.due
  const dueX = due === undefined ? NOW : x(Math.max(event.arrived, due))
  const hasWindow = due === undefined || due - event.arrived > 20
  const windowEnd = Math.min(dueX, isWaiting && (due ?? Infinity) > now ? NOW : 100)
  const runX = life.started === undefined ? undefined : x(life.started)
  const readyEnd = runX ?? (due !== undefined && due <= now ? NOW : dueX)
  return (
    <Row
      title={visible(life.flow)}
      href={life.run === undefined ? `lanes/${life.id}` : `runs/${encodeURIComponent(life.run)}`}
      text={visible(life.name)}
      label={`${life.flow}: ${life.ending}, ${life.detail}`}
      ending={life.ending}
      tone={life.look.tone}
      detail={life.detail}
      x={x}
      arrived={event.arrived}
    >
      <g>
        {hasWindow && windowEnd > start && (
          <>
            <rect class="water" x={percentText(start)} width={percentText(windowEnd - start)} y="18" height="14" />
            <line class="surface" x1={percentText(start)} x2={percentText(windowEnd)} y1="18" y2="18" />
          </>
        )}
        {due !== undefined && readyEnd > dueX + 0.4 && (
          <>
            <rect class="late" x={percentText(dueX)} width={percentText(readyEnd - dueX)} y="8" height="24" />
            <rect class="late-marks" x={percentText(dueX)} width={percentText(readyEnd - dueX)} y="8" height="24" />
          </>
        )}
        {due !== undefined && hasWindow && <Gate x={Math.min(99, dueX)} tone="" />}
        {life.attempts.map(({ at, ms }, index) => (
          <Mark key={index} name="failed" from={x(at - ms)} to={x(at)} />
        ))}
        <Rest life={life} x={x} now={now} />
      </g>
    </Row>
  )
}

/** What followed the failed attempts: the good one, or the wait for the next. */
function Rest({ life, x, now }: { life: LaneLife; x: X; now: number }): JSX.Element | null {
  const last = life.attempts.at(-1)
  const from = last?.at ?? life.started
  if (from === undefined) return null
  if (life.ended !== undefined) {
    if (life.kind === 'dead') return null
    const x2 = x(life.ended)
    const count = life.attempts.length
    return (
      <>
        {last !== undefined && x2 - x(from) > 2 && (
          <line class="backoff" x1={percentText(x(from) + 0.6)} x2={percentText(x2)} y1="20" y2="20" />
        )}
        <Mark name={life.kind === 'done' ? 'running' : 'ran still'} from={last === undefined ? x(from) : x2} to={x2} />
        {count > 0 && (
          <text class="t-dim halo wide-only" x={percentText(x2)} dx={LEAST + 8} y="24">
            attempt {count + 1}
          </text>
        )}
      </>
    )
  }
  const live = life.live
  if (live === undefined) return null
  if (live.state === 'running') return <Mark name="running" from={x(from)} to={NOW} />
  return (
    <>
      <line class="backoff" x1={percentText(x(from) + 0.6)} x2={live.until > now ? '96%' : `${NOW}%`} y1="20" y2="20" />
      {live.until > now && <Gate x={96} tone={life.look.tone === 'limit' ? 'limit' : 'fail'} />}
    </>
  )
}

/** On a logarithmic axis a long run at a late time is thin, so every mark is at least 10 px wide. */
function Mark({ name, from, to }: { name: string; from: number; to: number }): JSX.Element {
  return (
    <>
      <rect class={name} x={percentText(from)} width={LEAST} y="8" height="24" rx="2" />
      {to > from && <rect class={name} x={percentText(from)} width={percentText(to - from)} y="8" height="24" rx="2" />}
    </>
  )
}

function Gate({ x, tone }: { x: number; tone: string }): JSX.Element {
  return (
    <svg x={percentText(x)} width="1" height="1" overflow="visible">
      <rect class={`gate ${tone}`} x="-2" y="4" width="4" height="28" rx="1.5" />
      <rect class={`gate ${tone}`} x="-6" y="3" width="12" height="3.5" rx="1.75" />
    </svg>
  )
}
