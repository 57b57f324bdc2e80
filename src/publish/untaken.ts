// This file emits what happened to an event that a flow did not take.
import type { Event } from '../model/event.ts'
import { NO_SKIPS, formatSkip, NO_FLOW_MATCHES, type RoutingResult, type Skip } from '../model/routing.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { isReservedSource } from './route.ts'

/** The source of Sluice's own events (alerts, endpoints). Usually no flow matches them, so no `event.unwanted` is
    emitted for them. */
const ENGINE_SOURCE = 'sluice'

type Named = Pick<Event, 'id' | 'source' | 'type'>

/** `emitUntaken` emits `event.skipped` for each flow that found no key in the event, and `event.unwanted` if no flow
    matches it. */
export function emitUntaken(
  event: Named,
  { lanes, unrouted: marks, skips = NO_SKIPS }: Omit<RoutingResult, 'skips'> & Partial<Pick<RoutingResult, 'skips'>>,
  emit: AnyListener,
): void {
  emitSkips(event, skips, emit)
  const { id, source, type } = event
  const isWanted = lanes.length + marks.length + skips.length > 0
  if (!isWanted && source !== ENGINE_SOURCE && !isReservedSource({ source }))
    emit('event.unwanted', { event: id, source, type, text: NO_FLOW_MATCHES })
}

/** `emitSkips` emits `event.skipped` for each skip. */
export function emitSkips({ id, source, type }: Named, skips: readonly Skip[], emit: AnyListener): void {
  for (const skip of skips) {
    emit('event.skipped', { event: id, source, type, flow: skip.flow, text: formatSkip(skip) })
  }
}
