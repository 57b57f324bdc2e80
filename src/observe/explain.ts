// Why is this lane where it is? Asks the store a bounded number of questions and answers with one sentence and its facts.
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { laneId, ownLaneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { LaneState } from '../model/lane-states.ts'
import type { GetReply, StatsReply, Store } from '../store/contract/index.ts'
import type { ExplanationFacts, FlowFacts, HindranceFacts, LineFacts, PastFacts, RecordFacts } from './explain-facts.ts'
import { lineFacts, NOT_IN_LINE } from './explain-line.ts'
import { lettersOf, NO_PAST, pastOf } from './explain-past.ts'
import { recordFacts } from './explain-record.ts'
import { sentenceOf } from './explain-sentence.ts'

export interface Explanation {
  readonly flow: string
  readonly key: string
  readonly state: LaneState | 'empty' | 'unknown-flow'
  readonly text: string
  readonly facts: ExplanationFacts
}

export interface ExplainParts {
  readonly store: Store
  readonly flows: ReadonlyMap<string, Flow>
  /** Whether any process does. */
  readonly served: (flow: string) => boolean
  /** The limit for whose slot a live run of this process waits, and until when by the store's clock. */
  readonly waitingFor: (run: string) => { readonly limit: string; readonly until: Millis } | undefined
  /** Of this process: all runs it may have are under way. */
  readonly processFull: () => boolean
  /** Whether an earlier handler of the lane has not returned in this process. */
  readonly lingers: (lane: string) => boolean
}

export async function explain(parts: ExplainParts, flow: string, key: string): Promise<Explanation> {
  const facts = await factsOf(parts, flow, key)
  return { flow, key, state: facts.state, text: sentenceOf(facts), facts }
}

async function factsOf(parts: ExplainParts, name: string, key: string): Promise<ExplanationFacts> {
  const flow = parts.flows.get(name)
  const { item: lane, now } = await laneOf(parts.store, flow, name, key)
  const record = recordFacts(lane, flow?.tries, now)
  const [stats, ofFlow, line, letters, past] = await Promise.all([
    parts.store.stats(),
    flowFacts(parts, name, flow),
    lane === undefined ? NOT_IN_LINE : lineFacts(parts.store, lane, flow?.share !== undefined, now),
    lettersOf(parts.store, lane, record),
    pastFacts(parts.store, lane?.id ?? idOf(flow, name, key), record),
  ])
  return {
    flow: name,
    key,
    state: flow === undefined ? 'unknown-flow' : record.laneState,
    ...record,
    ...ofFlow,
    ...line,
    ...letters,
    ...past,
    ...pauseOf(stats, name),
    ...slotOf(parts, stats, record),
    full: isFull(flow, stats, line),
    processFull: parts.processFull(),
    lingers: lane !== undefined && parts.lingers(lane.id),
  }
}

function idOf(flow: Flow | undefined, name: string, key: string): string {
  return flow !== undefined && flow.keysOf === undefined ? ownLaneId(name, key) : laneId(name, key)
}

/** How the lane of an unknown flow got its name is not known either: both are tried. */
async function laneOf(store: Store, flow: Flow | undefined, name: string, key: string): Promise<GetReply<'lanes'>> {
  const found = await store.get({ kind: 'lanes', id: idOf(flow, name, key) })
  if (found.item !== undefined || flow !== undefined) return found
  return store.get({ kind: 'lanes', id: ownLaneId(name, key) })
}

async function flowFacts(parts: ExplainParts, name: string, flow: Flow | undefined): Promise<FlowFacts> {
  const pressure = flow?.adaptiveFrom === undefined ? undefined : await pressureOf(parts.store, name)
  return {
    declared: flow !== undefined,
    served: parts.served(name),
    concurrency: flow === undefined || flow.concurrency === Infinity ? undefined : flow.concurrency,
    pressure,
    quiet: flow === undefined || pressure === undefined ? undefined : quietAt(flow, pressure),
    globs: flow?.globs,
    keyed: flow?.keysOf !== undefined,
  }
}

async function pressureOf(store: Store, flow: string): Promise<number> {
  return (await store.pressure({ flows: [{ flow, raise: false }] })).levels[0] ?? 0
}

/** The window may be a function of the event, and there is none: what it says of an empty one, if it says anything. */
function quietAt(flow: Flow, level: number): Millis | undefined {
  const nothing = { id: '', source: '', type: '', time: 0, tenant: '', subject: '', attributes: '' }
  try {
    const { quiet } = flow.windowOf(new FlowEvent({ ...nothing, body: new Uint8Array() }), level)
    return Number.isFinite(quiet) ? quiet : undefined
  } catch {
    return undefined
  }
}

/** Only where nothing is there to speak of, for it is then what people want to know. */
async function pastFacts(store: Store, lane: Lane['id'], record: RecordFacts): Promise<PastFacts> {
  const looks = record.laneState === 'empty' || record.laneState === 'idle'
  return looks ? pastOf(store, lane) : NO_PAST
}

type PauseFacts = Pick<HindranceFacts, 'pausedBy' | 'pauseReason' | 'pausedSince'>

function pauseOf(stats: StatsReply, flow: string): PauseFacts {
  const paused = stats.flows.find((each) => each.flow === flow)?.paused
  return { pausedBy: paused?.by, pauseReason: paused?.reason, pausedSince: paused?.since }
}

/** Live leases are counted, wherever they are: permits that a process merely holds keep nobody from a turn for long. */
function isFull(flow: Flow | undefined, stats: StatsReply, line: LineFacts): boolean {
  if (flow === undefined) return false
  const ofFlow = stats.flows.find((each) => each.flow === flow.name)?.live ?? 0
  const live = flow.share === undefined ? ofFlow : (line.liveInGroup ?? 0)
  return live >= flow.concurrency
}

type SlotFacts = Pick<HindranceFacts, 'limit' | 'limitIn' | 'limitPausedFor'>

function slotOf(parts: ExplainParts, stats: StatsReply, record: RecordFacts): SlotFacts {
  const isLive = record.laneState === 'running' && record.run !== undefined
  const slot = isLive ? parts.waitingFor(record.run) : undefined
  if (slot === undefined) return { limit: undefined, limitIn: undefined, limitPausedFor: undefined }
  const pausedUntil = stats.limits.find((each) => each.name === slot.limit)?.pausedUntil ?? 0
  return {
    limit: slot.limit,
    limitIn: Math.max(0, slot.until - record.now, pausedUntil - record.now),
    limitPausedFor: pausedUntil > record.now ? pausedUntil - record.now : undefined,
  }
}
