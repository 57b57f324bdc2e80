// `createMaintenance` lists the maintenance tasks of a process and connects them with the stages.
import { mayTake } from './dead-letter-news.ts'
import { DEAD_LETTER_TYPE } from '../model/dead-letter-event.ts'
import { ENGINE_SOURCE, type Event } from '../model/event.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { ANNOUNCE_EVERY, type FlowRegistry } from '../flow/registry.ts'
import { placeUnrouted, type RouteTable, type UnroutedPlacement } from '../publish/route.ts'
import type { LeasedUnroutedEvent, Store, OutboxEvent } from '../store/contract/index.ts'
import {
  createAgeAlertTask,
  createPlacingTask,
  createPressureTask,
  createRetentionTask,
  toRetentionPolicy,
  type RetentionSettings,
} from '../maintain/tasks.ts'
import { createDeadLetterAlertTask } from '../maintain/dead-letter-alerts.ts'
import type { MaintenanceTask } from '../maintain/maintenance.ts'
import { emitSkips, emitUntaken } from '../publish/publisher.ts'

/** The events of the engine that a flow may take. A run that took one announces its death by an alert. */
const ENGINE_TYPES = [
  DEAD_LETTER_TYPE,
  'alert.raised',
  'alert.cleared',
  'endpoint.opened',
  'endpoint.disabled',
] as const

export interface MaintenanceDependencies extends RouteTable {
  readonly store: Store
  readonly watchesOutbox: boolean
  readonly registry: FlowRegistry
  readonly flows: ReadonlyMap<string, Flow>
  readonly settings: RetentionSettings & { readonly lateAfter: number }
  readonly emit: AnyListener
  /** Gets the pressure level of a flow. */
  readonly onPressure: (flow: string, level: number) => void
}

export function createMaintenance(deps: MaintenanceDependencies): readonly MaintenanceTask[] {
  const { store, watchesOutbox, registry, settings, emit, onPressure, routesEpoch, refreshRoutes } = deps
  const flows = [...deps.flows.values()]
  const placing = createPlacingTask({
    store,
    watchesOutbox,
    flows: () => [...deps.flows.keys()].filter((flow) => !registry.overruled.has(flow)),
    servedElsewhere: () => registry.servedElsewhere,
    routesEpoch,
    refreshRoutes,
    toPlaceItem: (entry) => {
      const item = placeUnrouted(entry, deps.routes())
      // Events from the outbox and about dead letters first become visible here.
      if (isFirstSight(entry)) emitReceived(entry.event, item, emit)
      else emitSkips(entry.event, item.skips, emit)
      return item
    },
    onTaken: (event) => emitTaken(event, emit),
  })
  const ages = createAgeAlertTask({
    store,
    lateAfter: settings.lateAfter,
    emit,
    servedAt: (flow, now) => (deps.flows.has(flow) ? now : registry.servedAt(flow)),
  })
  const served: MaintenanceTask = {
    name: 'served',
    run: async () => {
      await registry.announceServed()
      return ANNOUNCE_EVERY
    },
  }
  const deadLetters =
    createDeadLetterAlertTask({
      store,
      emit,
      flows: flows.filter((flow) => ENGINE_TYPES.some((type) => mayTake(flow, type))).map(({ name }) => name),
    }) ?? []
  const pressure = createPressureTask({ store, flows, onPressure }) ?? []
  return [
    createRetentionTask(store, toRetentionPolicy(flows, settings)),
    placing,
    ages,
    served,
    deadLetters,
    pressure,
  ].flat()
}

function isFirstSight({ reason, flow, tries, event }: LeasedUnroutedEvent): boolean {
  const isDeadLetter = flow === '' && event.source === ENGINE_SOURCE && event.type === DEAD_LETTER_TYPE
  return tries === 1 && (reason === 'outbox' || isDeadLetter)
}

function emitReceived(event: Event, { placements, unrouted, skips }: UnroutedPlacement, emit: AnyListener): void {
  const { id, source, type } = event
  const flows = [...new Set(placements.map((placement) => placement.flow))]
  emit('event.received', { event: id, source, type, lanes: placements.length, flows })
  emitUntaken(event, { lanes: placements, unrouted, skips }, emit)
}

/** The publisher got its result long ago, so a duplicate, conflict or rejection is emitted here (L10). */
function emitTaken({ id, source, type, result, unrouted }: OutboxEvent, emit: AnyListener): void {
  const named = { event: id, source, type }
  if (result.kind === 'duplicate' || result.kind === 'conflict')
    emit(`event.${result.kind}`, { ...named, of: result.of })
  if (result.kind === 'refused') emit('event.refused', { ...named, field: result.field, fix: result.fix })
  if (result.kind !== 'stored') return
  // The other reasons emit `event.received` when the event is placed.
  const lost = unrouted.filter(({ reason }) => reason !== 'outbox')
  if (lost.length === unrouted.length) emit('event.received', { ...named, lanes: 0, flows: [] })
  for (const { flow, reason, error } of lost) emit('event.unrouted', { ...named, flow, reason, error })
}
