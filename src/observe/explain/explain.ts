// `explain` reports why a lane is in its state. A bounded number of store calls gives one sentence and its facts.
import type { Millis } from '../../clock.ts'
import type { Flow } from '../../model/flow.ts'
import { laneId, keylessLaneId } from '../../model/identity.ts'
import type { LaneState } from '../../model/lane-states.ts'
import type { GetReply, StatsReply, Store } from '../../store/contract/index.ts'
import { sampleWindow } from '../flow-window.ts'
import type { ExplanationFacts, FlowFacts, ObstacleFacts, QueueFacts, LaneRecordFacts } from './facts.ts'
import { collectDeadLetterFacts, collectSkipFacts, readPastFacts } from './history.ts'
import { collectQueueFacts, toLaneRecordFacts } from './lane-facts.ts'
import { buildSentence } from './sentence.ts'

export interface Explanation {
  readonly flow: string
  readonly key: string
  readonly state: LaneState | 'empty' | 'unknown-flow'
  readonly text: string
  readonly facts: ExplanationFacts
}

export interface ExplainDependencies {
  readonly store: Store
  readonly flows: ReadonlyMap<string, Flow>
  readonly isServed: (flow: string) => boolean
  /** The limit for whose slot a live run of this process waits, and until when by the store's clock. */
  readonly findSlotWait: (run: string) => { readonly limit: string; readonly until: Millis } | undefined
  /** Whether this process already executes as many runs as it may. */
  readonly isProcessFull: () => boolean
  /** Why this process cannot claim runs of the flow. */
  readonly claimError: (flow: string) => string | undefined
  /** Whether an earlier handler of the lane has not returned in this process. */
  readonly hasLingeringHandler: (lane: string) => boolean
}

export async function explain(parts: ExplainDependencies, flow: string, key: string): Promise<Explanation> {
  const facts = await collectFacts(parts, flow, key)
  return { flow, key, state: facts.state, text: buildSentence(facts), facts }
}

async function collectFacts(parts: ExplainDependencies, name: string, key: string): Promise<ExplanationFacts> {
  const flow = parts.flows.get(name)
  const { item, now } = await readLane(parts.store, flow, name, key)
  const record = toLaneRecordFacts(item, flow?.maxAttempts, now)
  // Of a lane without content, people want to know the past and why nothing arrived.
  const hasContent = record.laneState !== 'empty' && record.laneState !== 'idle'
  const [stats, ofFlow, line, deadLetters, past, skips] = await Promise.all([
    parts.store.stats(),
    collectFlowFacts(parts, name, flow),
    item === undefined ? {} : collectQueueFacts(parts.store, item, flow?.share !== undefined, now),
    collectDeadLetterFacts(parts.store, item, record),
    hasContent ? {} : readPastFacts(parts.store, item?.id ?? toLaneId(flow, name, key)),
    hasContent ? {} : collectSkipFacts(parts.store, name, key),
  ])
  return {
    flow: name,
    key,
    state: flow === undefined ? 'unknown-flow' : record.laneState,
    ...record,
    ...ofFlow,
    ...line,
    ...deadLetters,
    ...past,
    ...skips,
    ...toPauseFacts(stats, name),
    ...toSlotFacts(parts, stats, record),
    full: isAtCapacity(flow, stats, line),
    processFull: parts.isProcessFull(),
    claimError: parts.claimError(name),
    lingers: item !== undefined && parts.hasLingeringHandler(item.id),
  }
}

function toLaneId(flow: Flow | undefined, name: string, key: string): string {
  return flow !== undefined && flow.selectKeys === undefined ? keylessLaneId(name, key) : laneId(name, key)
}

/** For an unknown flow, it is also unknown how the lane got its name, so both ways are tried. */
async function readLane(store: Store, flow: Flow | undefined, name: string, key: string): Promise<GetReply<'lanes'>> {
  const found = await store.get({ kind: 'lanes', id: toLaneId(flow, name, key) })
  if (found.item !== undefined || flow !== undefined) return found
  return store.get({ kind: 'lanes', id: keylessLaneId(name, key) })
}

async function collectFlowFacts(parts: ExplainDependencies, name: string, flow: Flow | undefined): Promise<FlowFacts> {
  const pressure = flow?.adaptiveBaseQuiet === undefined ? undefined : await readPressure(parts.store, name)
  return {
    declared: flow !== undefined,
    served: parts.isServed(name),
    concurrency: flow === undefined || flow.concurrency === Infinity ? undefined : flow.concurrency,
    pressure,
    quiet: flow === undefined || pressure === undefined ? undefined : computeQuiet(flow, pressure),
    globs: flow?.globs,
    keyed: flow?.selectKeys !== undefined,
  }
}

async function readPressure(store: Store, flow: string): Promise<number> {
  return (await store.updatePressure({ flows: [{ flow, raise: false }] })).levels[0] ?? 0
}

function computeQuiet(flow: Flow, level: number): Millis | undefined {
  const quiet = sampleWindow(flow, level)?.quiet
  return Number.isFinite(quiet) ? quiet : undefined
}

function toPauseFacts(stats: StatsReply, flow: string): Partial<ObstacleFacts> {
  const paused = stats.flows.find((each) => each.flow === flow)?.paused
  return { pausedBy: paused?.by, pauseReason: paused?.reason, pausedSince: paused?.since }
}

/** Counts live leases of all processes. A permit without a run does not delay a lane for long, so it does not count. */
function isAtCapacity(flow: Flow | undefined, stats: StatsReply, line: QueueFacts): boolean {
  if (flow === undefined) return false
  const ofFlow = stats.flows.find((each) => each.flow === flow.name)?.live ?? 0
  const live = flow.share === undefined ? ofFlow : (line.liveInGroup ?? 0)
  return live >= flow.concurrency
}

function toSlotFacts(parts: ExplainDependencies, stats: StatsReply, record: LaneRecordFacts): Partial<ObstacleFacts> {
  const isLive = record.laneState === 'running' && record.run !== undefined
  const slot = isLive ? parts.findSlotWait(record.run) : undefined
  if (slot === undefined) return {}
  const pausedUntil = stats.limits.find((each) => each.name === slot.limit)?.pausedUntil ?? 0
  return {
    limit: slot.limit,
    limitIn: Math.max(0, slot.until - record.now, pausedUntil - record.now),
    limitPausedFor: pausedUntil > record.now ? pausedUntil - record.now : undefined,
  }
}
