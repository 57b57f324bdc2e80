// What could not be routed when it came: now it can, or it stays marked (L2, L2a).
import type { Millis } from '../clock.ts'
import { WAS_NAMED } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { LeasedMark, PlaceItem } from '../store/contract/index.ts'
import { isOurs, ON_THREW, placesIn, route, type Routes } from './route.ts'

const LOOK_AGAIN: Millis = 60_000

export function latePlaces(mark: LeasedMark, routes: Routes): PlaceItem {
  const { id, token, flow: name, reason, error } = mark
  const event = new FlowEvent(mark.event)
  // It was not routed at all: those who stored it had old routes.
  if (name === '') {
    const { places, marks } = route(event, routes)
    return { kind: 'mark', id, token, places, marks: marks.map((one) => ({ ...one, after: 0 })) }
  }
  // Whoever names one of the engine's own flows speaks to nobody.
  const flow = routes.flows.find((one) => one.name === name && one.internal === isOurs(event))
  const left = reason === 'outbox' ? ({ reason: 'unknown-flow', error: WAS_NAMED } as const) : { reason, error }
  const unserved = { kind: 'mark', mark: { flow: name, ...left } } as const
  // Unless that is just what failed, or nobody could ask, it is known that the flow wants the event.
  const isWanted = reason === 'unknown-flow' ? error === WAS_NAMED : !error.startsWith(ON_THREW)
  const routed = flow === undefined ? unserved : placesIn(flow, event, routes, isWanted)
  const places = routed.kind === 'places' ? routed.places : []
  const marks = routed.kind === 'mark' ? [{ ...routed.mark, after: LOOK_AGAIN }] : []
  return { kind: 'mark', id, token, places, marks }
}
