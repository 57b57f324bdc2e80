// What has to be done now and then: retention, events that still need a place, the pressure on adaptive windows, and ages
// that somebody should know of (L2, L3, L19, L22, L23).
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/events.ts'
import type { LeasedMark, MarkReason, PlaceItem, RetentionPolicy, Store } from '../store/contract/index.ts'
import type { Chore } from './upkeep.ts'

const SECOND = 1_000

/** Nothing that waits, runs or blocks is ever removed: the store sees to that. */
export function retention(store: Store, policy: RetentionPolicy): Chore {
  const soon = Object.keys(policy.lanesPerTenant).length > 0
  return {
    name: 'retention',
    prompt: soon,
    async work() {
      const { more } = await store.upkeep({ budget: 20, policy })
      return more ? 50 : soon ? SECOND : 10 * SECOND
    },
  }
}

export interface PlacingParts {
  readonly store: Store
  readonly flows: readonly Flow[]
  readonly epoch: () => number
  readonly placed: (mark: LeasedMark) => PlaceItem
}

const PLACED_AT_ONCE = 100
/** `unknown-flow`: only those of flows that this process does know. */
const BY_THEMSELVES: readonly MarkReason[] = ['outbox', 'slot', 'fan-out', 'routes-old', 'unknown-flow']
/** What waits for a new version, or a person, is looked at after each start, and by hand. */
const AFTER_A_START: readonly MarkReason[] = ['key-failed']

export interface Placing extends Chore {
  /** The next time, everything that could not be routed is tried again. */
  readonly everything: () => void
}

export function placing({ store, flows, epoch, placed }: PlacingParts): Placing {
  const names = flows.map((flow) => flow.name)
  let first = true
  return {
    name: 'placing',
    everything: () => void (first = true),
    async work() {
      const reasons = first ? [...BY_THEMSELVES, ...AFTER_A_START] : BY_THEMSELVES
      const { marks } = await store.unrouted({ n: PLACED_AT_ONCE, lease: 30 * SECOND, reasons, flows: names })
      if (marks.length > 0) await store.place({ routes: epoch(), items: marks.map(placed) })
      const isMore = marks.length === PLACED_AT_ONCE
      first &&= isMore
      return isMore ? 0 : SECOND / 2
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
  readonly flows: readonly Flow[]
  readonly lateAfter: Millis
  readonly emit: AnyListener
}

const LOOK_EVERY = 5 * SECOND
const UNSERVED_AFTER = 60 * SECOND

/** A flow whose first lane is late, and one that holds events and that nobody serves. Said once, and once when it is over. */
export function ages({ store, flows, lateAfter, emit }: AgeParts): Chore {
  const raised = new Set<string>()
  const unservedSince = new Map<string, Millis>()
  const say = (alert: string, isSo: boolean, text: string): void => {
    if (isSo === raised.has(alert)) return
    if (isSo) raised.add(alert)
    else raised.delete(alert)
    emit(isSo ? 'alert.raised' : 'alert.cleared', { alert, text })
  }
  return {
    name: 'ages',
    async work() {
      const stats = await store.stats()
      for (const { flow, due, lanes, paused } of stats.flows) {
        const late = due === undefined || paused !== undefined ? 0 : stats.now - due
        say(`late:${flow}`, late > lateAfter, `The first lane of ${flow} has been due for ${late} ms.`)
        if (lanes === 0 || flows.some((one) => one.name === flow)) {
          unservedSince.delete(flow)
          raised.delete(`unserved:${flow}`)
        } else if (!unservedSince.has(flow)) unservedSince.set(flow, stats.now)
        else if (stats.now - (unservedSince.get(flow) ?? 0) >= UNSERVED_AFTER && !raised.has(`unserved:${flow}`)) {
          raised.add(`unserved:${flow}`)
          emit('flow.unserved', { flow, lanes })
        }
      }
      return LOOK_EVERY
    },
  }
}
