// `AppStatus` is the state of the whole app on one page: does it keep up, what waits where, and what needs a person. One computation
// serves everybody who watches.
import type { Clock, Millis } from '../clock.ts'
import type { EndpointWithHealth } from '../deliver/endpoints.ts'
import type { Flow } from '../model/flow.ts'
import { NO_SOURCE } from '../receive/refused-requests.ts'
import { OWN_SOURCES } from '../model/event.ts'
import type { ExplainDependencies } from '../observe/explain/explain.ts'
import { describeWindow, sampleWindow } from '../observe/flow-window.ts'
import { INTERNAL_FLOWS } from '../observe/stats/depth.ts'
import type { StatsRecorder } from '../observe/stats/recorder.ts'
import { floorTo, MINUTE } from '../observe/stats/rollups.ts'
import { Counts, type StoredBucket } from '../observe/stats/buckets.ts'
import {
  getShownState,
  isInLine,
  type LaneScan,
  type LaneScanResult,
  type ShownLaneState,
} from '../observe/status/lane-scan.ts'
import { judge, type Verdict, type VerdictFlow } from '../observe/status/verdict.ts'
import type { FlowStats, StatsReply, Store } from '../store/contract/index.ts'
import type { Alerts } from './alerts.ts'
import type { Limits } from './limits.ts'
import { Cached } from './cached.ts'
import type { Replays } from './replays.ts'
import type { Sources } from './sources.ts'

type EndpointState = 'up' | 'degraded' | 'down' | 'paused' | 'disabled' | 'unproven'

/** How many lanes of a flow are in each state. `retrying` counts those that wait for their next attempt, `events` what waits. */
export interface FlowStatus {
  readonly flow: string
  readonly delivery: boolean
  /** Whether this app declares the flow. Another process may serve it. */
  readonly declared: boolean
  readonly waiting: number
  readonly ready: number
  readonly running: number
  readonly retrying: number
  readonly limited: number
  readonly blocked: number
  readonly held: number
  readonly events: number
  readonly oldestDue: Millis | undefined
  readonly paused: FlowStats['paused']
  /** e.g. "quiet 10 s, max 60 s". */
  readonly window: string | undefined
  readonly concurrency: number | undefined
}

export interface StatusView extends Verdict {
  readonly now: Millis
  /** The first deadline of the lanes that are in line, without those of paused flows if others are in line too. */
  readonly oldestDue: Millis | undefined
  readonly lastRunBegan: Millis | undefined
  readonly lastEvent: Millis | undefined
  readonly lanes: {
    readonly total: number
    /** False if there are more lanes than were read; the counts are those of the lanes that were read. */
    readonly exact: boolean
    readonly events: number
    readonly byState: Readonly<Record<ShownLaneState, number>>
  }
  readonly flows: readonly FlowStatus[]
  readonly deadLetters: number
  readonly unrouted: number
  readonly endpoints: Readonly<Record<EndpointState, number>>
  readonly limits: { readonly free: number; readonly slowed: number; readonly paused: number }
  readonly alerts: { readonly raised: number; readonly pending: number }
  readonly replays: { readonly running: number }
  /** Requests that sources refused within the last hour. */
  readonly refused: number
}

export interface AppStatusDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly flows: ReadonlyMap<string, Flow>
  readonly scan: LaneScan
  readonly recorder: Pick<StatsRecorder, 'readSince' | 'lastRunBegan'>
  readonly alerts: Pick<Alerts, 'list'>
  readonly limits: Pick<Limits, 'list'>
  readonly replays: Pick<Replays, 'countRunning'>
  readonly listEndpoints: () => Promise<readonly EndpointWithHealth[]>
  readonly sources: Pick<Sources, 'list' | 'refused'>
  readonly work: () => Promise<Pick<ExplainDependencies, 'isServed' | 'isProcessFull'>>
}

const FRESH_FOR: Millis = 1_000
/** What costs more and changes less is read this often. */
const SLOW_FRESH_FOR: Millis = 5_000
const HOUR: Millis = 60 * MINUTE
const MAX_LIMITS = 1_000
/** A limit whose `per` is longer by less than this counts as free again. */
const SLOWED_ABOVE = 1.005

type SlowParts = Pick<StatusView, 'endpoints' | 'alerts' | 'replays' | 'refused' | 'limits'>

export class AppStatus {
  readonly #deps: AppStatusDependencies
  readonly #view: Cached<{ readonly view: StatusView; readonly at: Millis }>
  readonly #slow: Cached<SlowParts>

  constructor(deps: AppStatusDependencies) {
    this.#deps = deps
    this.#view = new Cached(deps.clock, FRESH_FOR, async () => {
      const at = deps.clock.monotonic()
      return { view: await this.#compute(), at }
    })
    this.#slow = new Cached(deps.clock, SLOW_FRESH_FOR, () => this.#readSlowParts())
  }

  async read(): Promise<StatusView> {
    const { view, at } = await this.#view.read()
    return { ...view, now: Math.floor(view.now + this.#deps.clock.monotonic() - at) }
  }

  async #compute(): Promise<StatusView> {
    const store = await this.#deps.store()
    const [scanned, stats, slow, work, lastEvent, lastRunBegan] = await Promise.all([
      this.#deps.scan.read(),
      store.stats(),
      this.#slow.read(),
      this.#deps.work(),
      findLastEvent(store),
      this.#findLastRun(store),
    ])
    const { now } = scanned
    const { flows, oldest } = this.#countByFlow(scanned, stats)
    const byState = { ...NO_LANES }
    let events = 0
    for (const flow of flows.values()) {
      for (const state of STATES) byState[state] += flow.lanes[state]
      events += flow.events
    }
    const facts = {
      now,
      inLine: oldest?.inLine ?? 0,
      oldestDue: oldest?.due,
      lastRunBegan,
      lastEvent,
      lateness: oldest === undefined ? [] : await this.#readLateness(now),
      flow: oldest === undefined ? undefined : toVerdictFlow(oldest.flow, this.#deps.flows, stats, work),
    }
    return {
      now,
      ...judge(facts),
      oldestDue: oldest?.due,
      lastRunBegan,
      lastEvent,
      lanes: { total: STATES.reduce((sum, state) => sum + byState[state], 0), exact: scanned.isExact, events, byState },
      flows: [...flows].map(([flow, counts]) => this.#toFlowStatus(flow, counts, stats)).toSorted(byName),
      deadLetters: stats.deadLetters,
      unrouted: stats.unrouted.reduce((sum, { count }) => sum + count, 0),
      ...slow,
    }
  }

  #countByFlow({ lanes, now }: LaneScanResult, stats: StatsReply): FlowBacklog {
    const flows = new Map<string, FlowCounts>()
    const known = [...this.#deps.flows.values()].filter(({ isInternal }) => !isInternal).map(({ name }) => name)
    for (const name of [...known, ...stats.flows.map(({ flow }) => flow)]) {
      if (!INTERNAL_FLOWS.has(name))
        flows.set(name, { lanes: { ...NO_LANES }, inLine: 0, events: 0, oldestDue: Infinity })
    }
    for (const lane of lanes) {
      const counts = flows.get(lane.flow)
      if (counts === undefined) continue
      const state = getShownState(lane, now)
      counts.lanes[state]++
      counts.events += lane.waiting
      if (!isInLine(lane, state, now)) continue
      counts.inLine++
      counts.oldestDue = Math.min(counts.oldestDue, lane.due)
    }
    const isPaused = new Set(stats.flows.filter(({ paused }) => paused !== undefined).map(({ flow }) => flow))
    const inLine = [...flows].filter(([, counts]) => counts.inLine > 0)
    const claimable = inLine.filter(([flow]) => !isPaused.has(flow))
    return { flows, oldest: findOldest(claimable.length > 0 ? claimable : inLine) }
  }

  #toFlowStatus(name: string, { lanes, events, oldestDue }: FlowCounts, stats: StatsReply): FlowStatus {
    const flow = this.#deps.flows.get(name)
    const window = flow === undefined ? undefined : sampleWindow(flow)
    return {
      flow: name,
      delivery: flow?.isDelivery === true,
      declared: flow !== undefined,
      waiting: lanes.waiting,
      ready: lanes.ready,
      running: lanes.running,
      retrying: lanes.retrying + lanes.snoozed + lanes.lapsed,
      limited: lanes.limited,
      blocked: lanes.blocked,
      held: lanes.held,
      events,
      oldestDue: oldestDue === Infinity ? undefined : oldestDue,
      paused: stats.flows.find((one) => one.flow === name)?.paused,
      window: window === undefined ? undefined : describeWindow(window),
      concurrency: flow === undefined || flow.concurrency === Infinity ? undefined : flow.concurrency,
    }
  }

  /** Another process may have begun the newest run. */
  async #findLastRun(store: Store): Promise<Millis | undefined> {
    const { items } = await store.find({ kind: 'runs', filter: {}, cursor: '', n: 1 })
    const [run] = items
    const live = (await this.#deps.scan.read()).lanes.map((lane) =>
      lane.run?.state === 'running' ? lane.run.started : 0,
    )
    const begun = [this.#deps.recorder.lastRunBegan ?? 0, run?.attempts.at(-1)?.at ?? run?.started ?? 0]
    const last = live.reduce((one, other) => Math.max(one, other), Math.max(...begun))
    return last === 0 ? undefined : last
  }

  /** Returns the latest start of each of the last three minutes, and of the current one. */
  async #readLateness(now: Millis): Promise<readonly Millis[]> {
    const from = floorTo(now, MINUTE) - 3 * MINUTE
    const buckets = await this.#deps.recorder.readSince(from)
    return [0, 1, 2, 3].map((n) => findLatestStart(buckets, from + n * MINUTE))
  }

  async #readSlowParts(): Promise<SlowParts> {
    const store = await this.#deps.store()
    const { now } = await store.readDocs({ kind: 'status', ids: [], after: '', n: 1 })
    const [endpoints, alerts, limits, running, refused] = await Promise.all([
      this.#deps.listEndpoints(),
      this.#deps.alerts.list(),
      this.#deps.limits.list('', MAX_LIMITS),
      this.#deps.replays.countRunning(),
      this.#countRefused(now - HOUR),
    ])
    const paused = limits.items.filter(({ pausedUntil }) => pausedUntil !== undefined).length
    const slowed = limits.items.filter(
      ({ pausedUntil, stretch = 1 }) => pausedUntil === undefined && stretch > SLOWED_ABOVE,
    ).length
    const states = endpoints.map(getEndpointState)
    const count = (state: EndpointState): number => states.filter((one) => one === state).length
    return {
      endpoints: {
        up: count('up'),
        degraded: count('degraded'),
        down: count('down'),
        paused: count('paused'),
        disabled: count('disabled'),
        unproven: count('unproven'),
      },
      limits: { free: limits.items.length - paused - slowed, slowed, paused },
      alerts: {
        raised: alerts.filter(({ state }) => state === 'raised' || state === 'easing').length,
        pending: alerts.filter(({ state }) => state === 'pending').length,
      },
      replays: { running },
      refused,
    }
  }

  async #countRefused(since: Millis): Promise<number> {
    const { sources } = this.#deps
    const names = [NO_SOURCE, ...sources.list().map(({ name }) => name)]
    const lists = await Promise.all(names.map((name) => sources.refused(name)))
    return lists.flat().filter(({ at }) => at >= since).length
  }
}

function getEndpointState({ health, active, proof }: EndpointWithHealth): EndpointState {
  if (health.breaker === 'disabled') return 'disabled'
  if (!active) return 'paused'
  return proof === 'pending' ? 'unproven' : health.status
}

interface FlowCounts {
  readonly lanes: Record<ShownLaneState, number>
  inLine: number
  events: number
  oldestDue: Millis
}

interface FlowBacklog {
  readonly flows: ReadonlyMap<string, FlowCounts>
  readonly oldest: OldestDue | undefined
}

interface OldestDue {
  readonly flow: string
  readonly due: Millis
  readonly inLine: number
}

const NO_LANES: Readonly<Record<ShownLaneState, number>> = {
  ready: 0,
  running: 0,
  waiting: 0,
  limited: 0,
  retrying: 0,
  snoozed: 0,
  lapsed: 0,
  blocked: 0,
  held: 0,
  idle: 0,
}
const STATES = Object.keys(NO_LANES) as readonly ShownLaneState[]

function findOldest(flows: readonly (readonly [string, FlowCounts])[]): OldestDue | undefined {
  const [first] = flows.toSorted(([, one], [, other]) => one.oldestDue - other.oldestDue)
  if (first === undefined) return undefined
  const inLine = flows.reduce((sum, [, counts]) => sum + counts.inLine, 0)
  return { flow: first[0], due: first[1].oldestDue, inLine }
}

function toVerdictFlow(
  name: string,
  flows: ReadonlyMap<string, Flow>,
  stats: StatsReply,
  work: Pick<ExplainDependencies, 'isServed' | 'isProcessFull'>,
): VerdictFlow {
  const known = stats.flows.find(({ flow }) => flow === name)
  return {
    name,
    paused: known?.paused,
    isServed: work.isServed(name),
    isFull: work.isProcessFull() || (known?.live ?? 0) >= (flows.get(name)?.concurrency ?? Infinity),
  }
}

async function findLastEvent(store: Store): Promise<Millis | undefined> {
  const filter = { withoutSource: OWN_SOURCES }
  return (await store.find({ kind: 'events', filter, cursor: '', n: 1 })).items[0]?.arrived
}

function findLatestStart(buckets: readonly StoredBucket[], at: Millis): Millis {
  const counts = new Counts()
  for (const bucket of buckets) {
    if (bucket.at === at) for (const [, , ...stored] of bucket.flows) counts.add(stored)
  }
  return counts.lateMs
}

function byName(one: FlowStatus, other: FlowStatus): number {
  return one.flow < other.flow ? -1 : 1
}
