// What has to be done now and then: retention, events that still need a place, the pressure on adaptive windows, and ages
// that somebody should know of (L2, L3, L19, L22, L23).
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/events.ts'
import type {
  LeasedMark,
  MarkReason,
  PlaceItem,
  PlaceReply,
  RetentionPolicy,
  StatsReply,
  Store,
  TakenEvent,
} from '../store/contract/index.ts'
import type { Chore } from './upkeep.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND

/** Nothing that waits, runs or blocks is ever removed: the store sees to that. */
export function retention(store: Store, policy: RetentionPolicy): Chore {
  const soon = Object.keys(policy.lanesPerTenant).length > 0
  let lookAt = -Infinity
  let cursor = ''
  return {
    name: 'retention',
    prompt: soon,
    async work() {
      const { more, now } = await store.upkeep({ budget: 20, policy })
      if (now >= lookAt) {
        const next = await endMarksOfGone(store, now, policy.letters, cursor)
        cursor = next ?? ''
        if (next === undefined) lookAt = now + HOUR
      }
      return more || cursor !== '' ? 50 : soon ? SECOND : 10 * SECOND
    },
  }
}

/** A flow that nobody has served for so long is gone; until then its process may just be away. */
const GONE_AFTER = 7 * 24 * HOUR
const MARKS_LOOKED_AT_ONCE = 500

/**
 * What waits for a flow that is gone is a dead letter to whoever looks at it, and goes by the same age: it would keep its
 * event for ever. One page of marks; answers where the next begins.
 */
async function endMarksOfGone(store: Store, now: Millis, kept: Millis, cursor: string): Promise<string | undefined> {
  const filter = { to: now - Math.max(kept, GONE_AFTER) }
  if (!(filter.to > 0)) return undefined
  const { items, next } = await store.find({ kind: 'marks', filter, cursor, n: MARKS_LOOKED_AT_ONCE })
  const ids = items.filter(({ reason }) => reason === 'unknown-flow').map(({ id }) => id)
  if (ids.length > 0) await store.steer({ what: 'marks', ids, act: 'drop' })
  return next
}

export interface PlacingParts {
  readonly store: Store
  /** The flows whose events this process can place. */
  readonly flows: () => readonly string[]
  /** Those that others serve. */
  readonly elsewhere: () => readonly string[]
  readonly epoch: () => number
  /** Reads the routes anew. */
  readonly refresh: () => Promise<void>
  readonly placed: (mark: LeasedMark) => PlaceItem
  readonly took: (event: TakenEvent) => void
}

const PLACED_AT_ONCE = 500
/** `unknown-flow`: only those of flows that this process does know. */
const BY_THEMSELVES: readonly MarkReason[] = ['outbox', 'slot', 'fan-out', 'routes-old', 'unknown-flow']
/** What waits for a new version, or a person, is looked at after each start, and by hand. */
const AFTER_A_START: readonly MarkReason[] = ['key-failed']

export interface Placing extends Chore {
  /** The next time, everything that could not be routed is tried again. */
  readonly everything: () => void
}

export function placing({ store, flows, elsewhere, epoch, refresh, placed, took }: PlacingParts): Placing {
  let first = true
  return {
    name: 'placing',
    everything: () => void (first = true),
    async work() {
      const isFirst = first
      // Who asks for everything from now on asks for what this call may have passed by already.
      first = false
      let isMore = isFirst
      let found = 0
      try {
        const reasons = isFirst ? [...BY_THEMSELVES, ...AFTER_A_START] : BY_THEMSELVES
        const who = { flows: flows(), elsewhere: elsewhere() }
        const { marks, taken } = await store.unrouted({ n: PLACED_AT_ONCE, lease: 30 * SECOND, reasons, ...who })
        for (const event of taken) took(event)
        const place = (): Promise<PlaceReply> => store.place({ routes: epoch(), items: marks.map(placed) })
        if (marks.length > 0 && (await place()).results.includes('routes-old')) {
          await refresh()
          await place()
        }
        found = marks.length + taken.length
        isMore = Math.max(marks.length, taken.length) === PLACED_AT_ONCE
      } finally {
        first ||= isFirst && isMore
      }
      if (isMore || first) return 0
      // Where some came, more will: an outbox in use is looked at often, an empty one now and then.
      return found > 0 ? SECOND / 20 : SECOND / 2
    },
  }
}

export interface PressureParts {
  readonly store: Store
  readonly flows: readonly Flow[]
  readonly heard: (flow: string, level: number) => void
}

/** A head of line that is later than `from` is pressure, as a refusal by the other side is. */
export function pressure({ store, flows, heard }: PressureParts): Chore | undefined {
  const adaptive = flows.filter((flow) => flow.adaptiveFrom !== undefined)
  if (adaptive.length === 0) return undefined
  return {
    name: 'pressure',
    prompt: true,
    async work() {
      const stats = await store.stats()
      const late = (name: string): Millis => {
        const of = stats.flows.find((one) => one.flow === name)
        return of?.due === undefined || of.paused !== undefined ? 0 : stats.now - of.due
      }
      const asked = adaptive.map(({ name, adaptiveFrom = Infinity }) => ({
        flow: name,
        raise: late(name) > adaptiveFrom,
      }))
      const { levels } = await store.pressure({ flows: asked })
      for (const [at, flow] of adaptive.entries()) heard(flow.name, levels[at] ?? 0)
      return SECOND
    },
  }
}

export interface AgeParts {
  readonly store: Store
  readonly lateAfter: Millis
  readonly emit: AnyListener
  /** When it was last said that a process serves the flow: now, if it is this one. */
  readonly servedAt: (flow: string, now: Millis) => Millis | undefined
}

/** Its flow is unknown, or known and away: what was published to it in a transaction waits for it in its order. */
function isLeftOver({ reason, oldest }: StatsReply['marks'][number], now: Millis): boolean {
  return reason === 'unknown-flow' || (reason === 'outbox' && now - oldest >= UNSERVED_AFTER)
}

const LOOK_EVERY = 5 * SECOND
const UNSERVED_AFTER = 60 * SECOND
const MARKS_LOOKED_AT = 100

/** A flow whose first lane is late, and one that holds events and that nobody serves. Said once, and once when it is over. */
export function ages({ store, lateAfter, emit, servedAt }: AgeParts): Chore {
  const late = new Set<string>()
  const unservedSince = new Map<string, Millis>()
  const told = new Set<string>()
  const lookAtLine = (flow: string, by: Millis): void => {
    if (by > lateAfter === late.has(flow)) return
    const what = { alert: `late:${flow}`, text: `The first lane of ${flow} has been due for ${by} ms.` }
    if (by > lateAfter) {
      late.add(flow)
      emit('alert.raised', what)
    } else {
      late.delete(flow)
      emit('alert.cleared', { ...what, text: `The line of ${flow} is no longer late.` })
    }
  }
  const lookAtServing = (flow: string, lanes: number, now: Millis): void => {
    const since = servedAt(flow, now) ?? unservedSince.get(flow) ?? now
    unservedSince.set(flow, since)
    if (now - since < UNSERVED_AFTER || told.has(flow)) return
    told.add(flow)
    emit('flow.unserved', { flow, lanes })
  }
  return {
    name: 'ages',
    async work() {
      const stats = await store.stats()
      const listed = new Map(stats.flows.map((one) => [one.flow, one]))
      for (const flow of new Set([...listed.keys(), ...late])) {
        const { due = stats.now, paused } = listed.get(flow) ?? {}
        lookAtLine(flow, paused === undefined ? stats.now - due : 0)
      }
      const holding = new Map(stats.flows.filter(({ lanes }) => lanes > 0).map(({ flow, lanes }) => [flow, lanes]))
      if (stats.marks.some((mark) => isLeftOver(mark, stats.now))) {
        const { items } = await store.find({ kind: 'marks', filter: {}, cursor: '', n: MARKS_LOOKED_AT })
        for (const { flow } of items) if (flow !== '' && !holding.has(flow)) holding.set(flow, 0)
      }
      for (const flow of unservedSince.keys()) {
        if (holding.has(flow) && servedAt(flow, stats.now) !== stats.now) continue
        unservedSince.delete(flow)
        told.delete(flow)
      }
      for (const [flow, lanes] of holding) lookAtServing(flow, lanes, stats.now)
      return LOOK_EVERY
    },
  }
}
