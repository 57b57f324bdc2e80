// What the page of a lane shows beside the lane: its events, the options of its flow, and its last runs. Each call reads a bounded
// number of records.
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { Lane } from '../model/lane.ts'
import { describeWindow, NO_EVENT, sampleWindow } from '../observe/flow-window.ts'
import type { EventRecord, RunRecord, Store } from '../store/contract/index.ts'
import type { Page } from './pages.ts'
import { describeClosing, type RunClosing } from './run-closing.ts'

/** An event that waits in a lane, or belongs to its run. */
export interface LaneEvent {
  readonly id: string
  readonly at: Millis
  readonly type: string
  readonly subject: string
  readonly source: string
  readonly bytes: number
  readonly inRun: boolean
}

/** The options of a flow as they apply to an event without content. */
interface ShownFlowOptions {
  readonly window: { readonly quiet: Millis | undefined; readonly max: Millis | undefined } | undefined
  readonly windowText: string
  readonly maxEvents: number | undefined
  readonly maxBytes: number | undefined
  readonly whileRunning: string | undefined
  readonly concurrency: number | undefined
  readonly attempts: number
  readonly timeoutMs: Millis | undefined
  readonly onDead: string
  readonly take: string
  readonly retryDelays: readonly Millis[]
  readonly delivery: boolean
}

interface PastRun
  extends RunClosing, Pick<RunRecord, 'id' | 'kind' | 'reason' | 'tries' | 'started' | 'ended' | 'attempts'> {
  readonly events: number
}

export interface LaneDetails {
  /** The first 100 that run or wait. */
  readonly events: readonly LaneEvent[]
  /** Undefined if this app does not declare the flow. */
  readonly flowOptions: ShownFlowOptions | undefined
  /** The live runs of the flow, if it has a `concurrency`. */
  readonly slots: { readonly used: number; readonly of: number } | undefined
  /** The median of the last runs of the flow that needed one attempt. */
  readonly medianRunMs: Millis | undefined
  readonly lastRuns: readonly PastRun[]
}

interface LaneDetailsDependencies {
  readonly store: Store
  readonly flow: Flow | undefined
  readonly listRuns: (filter: { readonly flow: string; readonly lane?: string }, n: number) => Promise<Page<RunRecord>>
}

const MAX_EVENTS = 100
const LAST_RUNS = 10
const RUNS_OF_FLOW = 30
const MAX_DELAYS = 20

export async function readLaneDetails(lane: Lane, deps: LaneDetailsDependencies): Promise<LaneDetails> {
  const { store, flow, listRuns } = deps
  const [events, stats, ofLane, ofFlow] = await Promise.all([
    readLaneEvents(store, lane, MAX_EVENTS),
    store.stats(),
    listRuns({ flow: lane.flow, lane: lane.id }, LAST_RUNS),
    listRuns({ flow: lane.flow }, RUNS_OF_FLOW),
  ])
  const used = stats.flows.find((one) => one.flow === lane.flow)?.live ?? 0
  return {
    events,
    flowOptions: flow === undefined ? undefined : toFlowOptions(flow),
    slots: flow === undefined || flow.concurrency === Infinity ? undefined : { used, of: flow.concurrency },
    medianRunMs: findMedian(ofFlow.items.filter(isSingleAttempt).map((run) => run.ended - run.started)),
    lastRuns: ofLane.items.map((run) => toPastRun(run, flow)),
  }
}

/** `readLaneEvents` returns the first `n` events of the lane: those of its run, then those that wait. */
export async function readLaneEvents(store: Store, lane: Lane, n: number): Promise<readonly LaneEvent[]> {
  const find = async (placed: 'waiting' | 'run', most: number): Promise<readonly EventRecord[]> => {
    const filter = { lane: lane.id, placed }
    return (await store.find({ kind: 'events', filter, cursor: '', n: most, oldestFirst: true })).items
  }
  const inRun = lane.run === undefined ? [] : await find('run', n)
  const hasMore = inRun.length < n && lane.waiting + lane.replays > 0
  const waiting = hasMore ? await find('waiting', n - inRun.length) : []
  return [...inRun.map((event) => toLaneEvent(event, true)), ...waiting.map((event) => toLaneEvent(event, false))]
}

function toLaneEvent({ id, arrived, type, subject, source, size }: EventRecord, inRun: boolean): LaneEvent {
  return { id, at: arrived, type, subject, source, bytes: size, inRun }
}

function toPastRun(run: RunRecord, flow: Flow | undefined): PastRun {
  const { id, kind, reason, tries, started, ended, attempts, events } = run
  return { id, kind, reason, tries, started, ended, attempts, events: events.length, ...describeClosing(run, flow) }
}

function toFlowOptions(flow: Flow): ShownFlowOptions {
  const window = sampleWindow(flow)
  return {
    window: window === undefined ? undefined : { quiet: toFinite(window.quiet), max: toFinite(window.max) },
    windowText: window === undefined ? 'depends on the event' : (describeWindow(window) ?? 'none'),
    maxEvents: toFinite(flow.maxEvents),
    maxBytes: toFinite(flow.maxBytes),
    whileRunning: findWhileRunning(flow),
    concurrency: toFinite(flow.concurrency),
    attempts: flow.maxAttempts,
    timeoutMs: toFinite(flow.timeout),
    onDead: flow.onDead,
    take: flow.take,
    retryDelays: listRetryDelays(flow),
    delivery: flow.isDelivery,
  }
}

function toFinite(value: number): number | undefined {
  return value === Infinity ? undefined : value
}

/** The option may be a function of the event that rejects one without content. */
function findWhileRunning(flow: Flow): string | undefined {
  try {
    return flow.whileRunning(new FlowEvent(NO_EVENT))
  } catch {
    return undefined
  }
}

/** The delays without jitter. */
function listRetryDelays(flow: Flow): readonly Millis[] {
  const delays: Millis[] = []
  let elapsed = 0
  for (let failures = 1; failures < Math.min(flow.maxAttempts, MAX_DELAYS + 1); failures++) {
    const delay = flow.retryDelay({ failures, elapsed, random: 0.5 })
    if (delay === undefined) break
    delays.push(delay)
    elapsed += delay
  }
  return delays
}

/** `tries` counts failed attempts, so a dead run with one had no other. */
function isSingleAttempt({ kind, tries }: RunRecord): boolean {
  return tries === (kind === 'dead' ? 1 : 0)
}

function findMedian(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]
}
