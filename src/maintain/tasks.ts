// The maintenance tasks of the engine: retention, placing unrouted events, the pressure on adaptive windows, and alerts about late
// lanes (L2, L3, L19, L22, L23).
import { NEVER, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import { ROUTING_FAULTS } from '../model/routing.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type {
  LeasedUnroutedEvent,
  UnroutedReason,
  PlaceItem,
  PlaceReply,
  RetentionPolicy,
  StatsReply,
  Store,
  OutboxEvent,
} from '../store/contract/index.ts'
import type { MaintenanceTask } from './maintenance.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND

export interface RetentionSettings {
  readonly keepEvents: Readonly<Record<string, Millis>>
  readonly keepDeadLetters: Millis
  readonly keepBytes: number
}

/** `toRetentionPolicy` builds the store's retention policy: per source for events and per flow for runs (L23). */
export function toRetentionPolicy(flows: readonly Flow[], keeping: RetentionSettings): RetentionPolicy {
  const { keepEvents, keepDeadLetters, keepBytes } = keeping
  const bounded = flows.filter((flow) => flow.maxLanesPerTenant < Infinity)
  return {
    events: keepEvents,
    runs: {
      '': keepEvents[''] ?? NEVER,
      ...Object.fromEntries(flows.map((flow) => [flow.name, Math.min(flow.retention, NEVER)])),
    },
    deadLetters: keepDeadLetters,
    bytes: keepBytes,
    lanesPerTenant: Object.fromEntries(bounded.map((flow) => [flow.name, flow.maxLanesPerTenant])),
  }
}

/** `createRetentionTask` applies retention. The store itself never removes anything that waits, runs or blocks. */
export function createRetentionTask(store: Store, policy: RetentionPolicy): MaintenanceTask {
  const isPrompt = Object.keys(policy.lanesPerTenant).length > 0
  let nextScanAt = -Infinity
  let cursor = ''
  return {
    name: 'retention',
    isPrompt,
    async run() {
      const { more, now } = await store.maintain({ budget: 20, policy })
      if (now >= nextScanAt) {
        const next = await dropUnroutedOfGoneFlows(store, now, policy.deadLetters, cursor)
        cursor = next ?? ''
        if (next === undefined) nextScanAt = now + HOUR
      }
      return more || cursor !== '' ? 50 : isPrompt ? SECOND : 10 * SECOND
    },
  }
}

/** A flow that no process has served for this long is gone. Until then, its process may just be down. */
const GONE_AFTER = 7 * 24 * HOUR
const UNROUTED_PAGE = 500

/** Drops old unrouted events of gone flows, which would keep their event for ever. Returns the next cursor. */
async function dropUnroutedOfGoneFlows(
  store: Store,
  now: Millis,
  kept: Millis,
  cursor: string,
): Promise<string | undefined> {
  const filter = { to: now - Math.max(kept, GONE_AFTER) }
  if (!(filter.to > 0)) return undefined
  const { items, next } = await store.find({ kind: 'unrouted', filter, cursor, n: UNROUTED_PAGE })
  const ids = items.filter(({ reason }) => reason === 'unknown-flow').map(({ id }) => id)
  if (ids.length > 0) await store.steer({ what: 'unrouted', ids, act: 'drop' })
  return next
}

export interface PlacingDependencies {
  readonly store: Store
  /** Whether to look for events in the outbox promptly under a test's clock too. */
  readonly watchesOutbox: boolean
  /** The flows whose events this process can place. */
  readonly flows: () => readonly string[]
  /** The flows that other processes serve. */
  readonly servedElsewhere: () => readonly string[]
  readonly routesEpoch: () => number
  /** Reads the routes again. */
  readonly refreshRoutes: () => Promise<void>
  readonly toPlaceItem: (entry: LeasedUnroutedEvent) => PlaceItem
  readonly onTaken: (event: OutboxEvent) => void
}

const PLACE_BATCH = 500
/** Of `unknown-flow`, a process retries only events of flows that it serves. */
const RETRIED_ALWAYS: readonly UnroutedReason[] = ['outbox', 'slot', 'fan-out', 'routes-old', 'unknown-flow']

export function createPlacingTask({
  store,
  watchesOutbox,
  flows,
  servedElsewhere,
  routesEpoch,
  refreshRoutes,
  toPlaceItem,
  onTaken,
}: PlacingDependencies): MaintenanceTask {
  let first = true
  return {
    name: 'placing',
    isPrompt: watchesOutbox,
    async run() {
      const isFirst = first
      first = false
      let isMore = isFirst
      let found = 0
      try {
        // These wait for a new version, so each start retries them. A retry by hand changes their reason to `routes-old`.
        const reasons: readonly UnroutedReason[] = isFirst ? [...RETRIED_ALWAYS, ...ROUTING_FAULTS] : RETRIED_ALWAYS
        const who = { flows: flows(), elsewhere: servedElsewhere() }
        const { unrouted, takenFromOutbox } = await store.claimUnrouted({
          n: PLACE_BATCH,
          lease: 30 * SECOND,
          reasons,
          ...who,
        })
        for (const event of takenFromOutbox) onTaken(event)
        const place = (): Promise<PlaceReply> =>
          store.place({ routes: routesEpoch(), items: unrouted.map(toPlaceItem) })
        if (unrouted.length > 0 && (await place()).results.includes('routes-old')) {
          await refreshRoutes()
          await place()
        }
        found = unrouted.length + takenFromOutbox.length
        isMore = Math.max(unrouted.length, takenFromOutbox.length) === PLACE_BATCH
      } finally {
        first ||= isFirst && isMore
      }
      if (isMore || first) return 0
      // An outbox in use is checked often, an empty one rarely.
      return found > 0 ? SECOND / 20 : SECOND / 2
    },
  }
}

export interface PressureDependencies {
  readonly store: Store
  readonly flows: readonly Flow[]
  readonly onPressure: (flow: string, level: number) => void
}

/** `createPressureTask` raises the pressure of a flow whose first ready lane is later than `from`, as a 429 does (L22). */
export function createPressureTask({ store, flows, onPressure }: PressureDependencies): MaintenanceTask | undefined {
  const adaptive = flows.filter((flow) => flow.adaptiveBaseQuiet !== undefined)
  if (adaptive.length === 0) return undefined
  return {
    name: 'pressure',
    isPrompt: true,
    async run() {
      const stats = await store.stats()
      const late = (name: string): Millis => {
        const of = stats.flows.find((one) => one.flow === name)
        return of?.due === undefined || of.paused !== undefined ? 0 : stats.now - of.due
      }
      const reports = adaptive.map(({ name, adaptiveBaseQuiet = Infinity }) => ({
        flow: name,
        raise: late(name) > adaptiveBaseQuiet,
      }))
      const { levels } = await store.updatePressure({ flows: reports })
      for (const [at, flow] of adaptive.entries()) onPressure(flow.name, levels[at] ?? 0)
      return SECOND
    },
  }
}

export interface AgeAlertDependencies {
  readonly store: Store
  readonly lateAfter: Millis
  readonly emit: AnyListener
  /** When a process last served the flow; now if this process serves it. */
  readonly servedAt: (flow: string, now: Millis) => Millis | undefined
}

/** `isUnserved` is true for an unknown flow, and for outbox events that wait, in order, for a flow whose processes are down. */
function isUnserved({ reason, oldest }: StatsReply['unrouted'][number], now: Millis): boolean {
  return reason === 'unknown-flow' || (reason === 'outbox' && now - oldest >= UNSERVED_AFTER)
}

const CHECK_EVERY = 5 * SECOND
const UNSERVED_AFTER = 60 * SECOND
const UNROUTED_CHECKED = 100

/** `createAgeAlertTask` alerts once about a late or unserved flow that holds events, and when a flow caught up. */
export function createAgeAlertTask({ store, lateAfter, emit, servedAt }: AgeAlertDependencies): MaintenanceTask {
  const late = new Set<string>()
  const unservedSince = new Map<string, Millis>()
  const announced = new Set<string>()
  const checkLateness = (flow: string, by: Millis): void => {
    if (by > lateAfter === late.has(flow)) return
    const what = { alert: `late:${flow}`, text: `The first lane of ${flow} has been due for ${by} ms.` }
    if (by > lateAfter) {
      late.add(flow)
      emit('alert.raised', what)
    } else {
      late.delete(flow)
      emit('alert.cleared', { ...what, text: `The first lane of ${flow} is no longer late.` })
    }
  }
  const checkServed = (flow: string, lanes: number, now: Millis): void => {
    const since = servedAt(flow, now) ?? unservedSince.get(flow) ?? now
    unservedSince.set(flow, since)
    if (now - since < UNSERVED_AFTER || announced.has(flow)) return
    announced.add(flow)
    emit('flow.unserved', { flow, lanes })
  }
  return {
    name: 'ages',
    async run() {
      const stats = await store.stats()
      const listed = new Map(stats.flows.map((one) => [one.flow, one]))
      for (const flow of new Set([...listed.keys(), ...late])) {
        const { due = stats.now, paused } = listed.get(flow) ?? {}
        checkLateness(flow, paused === undefined ? stats.now - due : 0)
      }
      const holding = new Map(stats.flows.filter(({ lanes }) => lanes > 0).map(({ flow, lanes }) => [flow, lanes]))
      if (stats.unrouted.some((entry) => isUnserved(entry, stats.now))) {
        const { items } = await store.find({ kind: 'unrouted', filter: {}, cursor: '', n: UNROUTED_CHECKED })
        for (const { flow } of items) if (flow !== '' && !holding.has(flow)) holding.set(flow, 0)
      }
      for (const flow of unservedSince.keys()) {
        if (holding.has(flow) && servedAt(flow, stats.now) !== stats.now) continue
        unservedSince.delete(flow)
        announced.delete(flow)
      }
      for (const [flow, lanes] of holding) checkServed(flow, lanes, stats.now)
      return CHECK_EVERY
    },
  }
}
