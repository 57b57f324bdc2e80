// `placeUnrouted` places an event that could not be routed when it arrived, or keeps it unrouted (L2, L2a).
import type { Millis } from '../clock.ts'
import { NOT_SERVED_HERE } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { NO_SKIPS } from '../model/routing.ts'
import type { LeasedUnroutedEvent, PlaceItem } from '../store/contract/index.ts'
import { isReservedSource, createNoKeySkip, ON_THREW, placementsIn, route, type Routes } from './route.ts'

const RETRY_AFTER: Millis = 60_000

/** `UnroutedPlacement` is the result for one unrouted event. */
export type UnroutedPlacement = Required<Extract<PlaceItem, { readonly kind: 'mark' }>>

export function placeUnrouted(mark: LeasedUnroutedEvent, routes: Routes): UnroutedPlacement {
  const { id, token, flow: name, reason, error } = mark
  const event = new FlowEvent(mark.event)
  const confidential = event.encrypted
  // The event was not routed at all: the process that stored it had old routes.
  if (name === '') {
    const { places, marks, skips } = route(event, routes)
    return {
      kind: 'mark',
      id,
      token,
      placements: places,
      unrouted: marks.map((one) => ({ ...one, after: 0 })),
      skips,
      confidential,
    }
  }
  // An event can address internal flows only if the engine published it.
  const flow = routes.flows.find((one) => one.name === name && one.isInternal === isReservedSource(event))
  const left = reason === 'outbox' ? ({ reason: 'unknown-flow', error: NOT_SERVED_HERE } as const) : { reason, error }
  const unserved = { kind: 'mark', mark: { flow: name, ...left } } as const
  // The flow is known to want the event, unless its `on` threw or no process could call it.
  const isWanted = reason === 'unknown-flow' ? error === NOT_SERVED_HERE : !error.startsWith(ON_THREW)
  const routed = flow === undefined ? unserved : placementsIn(flow, event, routes, isWanted)
  const places = routed.kind === 'places' ? routed.places : []
  const marks = routed.kind === 'mark' ? [{ ...routed.mark, after: RETRY_AFTER }] : []
  const skips = routed.kind === 'skipped' && flow !== undefined ? [createNoKeySkip(flow)] : NO_SKIPS
  return { kind: 'mark', id, token, placements: places, unrouted: marks, skips, confidential }
}
