// Events that are stored but not placed in all their lanes, and replays, in the reference model (L2, L16).
import { addDelay } from '../../../src/clock.ts'
import type { PlaceCall, PlaceItem, PlaceReply, ClaimUnroutedCall } from '../../../src/store/contract/index.ts'
import { addUnrouted, placeLive, placeReplay } from './place.ts'
import type { Model, ModelUnrouted } from './state.ts'

/** The unrouted events that are leased, in order. The store draws their tokens, and shows their ids here for the first time. */
export function claimUnrouted(model: Model, call: ClaimUnroutedCall): readonly ModelUnrouted[] {
  const due = model.unrouted
    .filter((entry) => entry.due <= model.now && call.reasons.includes(entry.reason))
    .filter((entry) => entry.flow === '' || call.flows.includes(entry.flow))
    .toSorted((a, b) => a.due - b.due || a.order - b.order)
    .slice(0, call.n)
  for (const entry of due) entry.due = addDelay(model.now, call.lease)
  return due
}

export type Placed = PlaceReply['results'][number]

/** `seen` matters only if an event that was no longer needed may still exist for a replay. */
export function place(model: Model, call: PlaceCall, seen: readonly Placed[]): readonly Placed[] {
  return call.items.map((item, n) => {
    if (item.kind === 'replay') return replay(model, call.routes, item, seen[n])
    return placeUnrouted(model, call.routes, item)
  })
}

type ReplayItem = Extract<PlaceItem, { kind: 'replay' }>

function replay(model: Model, routes: number, item: ReplayItem, seen: Placed | undefined): Placed {
  if (routes < model.routes) return 'routes-old'
  const known = model.events.get(item.event)
  if (known === undefined || known.gone === 'yes' || (known.gone === 'perhaps' && seen === 'gone')) return 'gone'
  const fresh = item.placements
    .filter((one) => !model.replays.has(`${item.replay}/${item.event}/${one.lane}`))
    .filter((one) => item.once !== true || !known.lanes.has(one.lane))
  for (const one of fresh) {
    model.replays.add(`${item.replay}/${item.event}/${one.lane}`)
    placeReplay(model, known.event, one, item.replay)
  }
  return fresh.length === 0 ? 'already' : 'placed'
}

function placeUnrouted(model: Model, routes: number, item: Extract<PlaceItem, { kind: 'unrouted' }>): Placed {
  if (routes < model.routes) return 'routes-old'
  if (model.placedUnrouted.get(item.id) === item.token) return 'lost'
  const entry = model.unrouted.find((other) => other.id === item.id)
  if (entry === undefined || entry.token !== item.token || entry.due <= model.now) return 'lost'
  const known = model.events.get(entry.event)
  if (known === undefined || known.gone === 'yes') return 'gone'
  model.placedUnrouted.set(item.id, item.token)
  model.unrouted = model.unrouted.filter((other) => other !== entry)
  for (const one of item.placements) if (!known.lanes.has(one.lane)) placeLive(model, known.event, one)
  for (const one of item.unrouted) addUnrouted(model, entry.event, one, one.after)
  return 'placed'
}
