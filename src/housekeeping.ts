// Which chores a process has, put together from what the stages know: the composition root's second half.
import type { Event } from './model/event.ts'
import type { Flow } from './model/flow.ts'
import type { AnyListener } from './observe/events.ts'
import { SAY_SERVED_EVERY, type KnownFlows } from './receive/known-flows.ts'
import { latePlaces } from './receive/late-places.ts'
import type { Routes } from './receive/route.ts'
import type { PlaceItem, Store, TakenEvent } from './store/contract/index.ts'
import { ages, placing, pressure, retention, type Placing } from './upkeep/chores.ts'
import { retentionPolicy, type Keeping } from './upkeep/retention-policy.ts'
import type { Chore } from './upkeep/upkeep.ts'

export interface HousekeepingParts {
  readonly store: Store
  readonly known: KnownFlows
  readonly epoch: () => number
  readonly refresh: () => Promise<void>
  readonly flows: ReadonlyMap<string, Flow>
  readonly settings: Keeping & { readonly lateAfter: number }
  readonly emit: AnyListener
  readonly routes: () => Routes
  /** How hard-pressed a flow is now. */
  readonly pressed: (flow: string, level: number) => void
}

export interface Housekeeping {
  readonly chores: readonly Chore[]
  readonly placing: Placing
}

export function housekeeping(parts: HousekeepingParts): Housekeeping {
  const { store, known, settings, emit } = parts
  const flows = [...parts.flows.values()]
  const late = placing({
    store,
    flows: () => [...parts.flows.keys()].filter((flow) => !known.overruled.has(flow)),
    elsewhere: () => known.elsewhere,
    epoch: parts.epoch,
    refresh: parts.refresh,
    placed: (mark) => {
      const item = latePlaces(mark, parts.routes())
      // What came through the outbox is first seen here.
      if (mark.reason === 'outbox' && mark.tries === 1) tellReceived(mark.event, item, emit)
      return item
    },
    took: (event) => tellTaken(event, emit),
  })
  const old = ages({
    store,
    lateAfter: settings.lateAfter,
    emit,
    servedAt: (flow, now) => (parts.flows.has(flow) ? now : known.servedAt(flow)),
  })
  const served: Chore = {
    name: 'served',
    work: async () => {
      await known.say()
      return SAY_SERVED_EVERY
    },
  }
  const adaptive = pressure({ store, flows, heard: parts.pressed })
  const chores = [retention(store, retentionPolicy(flows, settings)), late, old, served]
  return { chores: adaptive === undefined ? chores : [...chores, adaptive], placing: late }
}

function tellReceived({ id, source, type }: Event, { places }: PlaceItem, emit: AnyListener): void {
  const flows = [...new Set(places.map((place) => place.flow))]
  emit('event.received', { event: id, source, type, lanes: places.length, flows })
}

/** Who published it has its answer: whatever is not as it should be is told here (L10). */
function tellTaken({ id, source, type, result, marks }: TakenEvent, emit: AnyListener): void {
  const named = { event: id, source, type }
  if (result.kind === 'duplicate' || result.kind === 'conflict')
    emit(`event.${result.kind}`, { ...named, of: result.of })
  if (result.kind === 'refused') emit('event.refused', { ...named, field: result.field, fix: result.fix })
  if (result.kind !== 'stored') return
  // Of the others it is told when they are placed.
  const lost = marks.filter(({ reason }) => reason !== 'outbox')
  if (lost.length === marks.length) emit('event.received', { ...named, lanes: 0, flows: [] })
  for (const { flow, reason, error } of lost) emit('event.unrouted', { ...named, flow, reason, error })
}
