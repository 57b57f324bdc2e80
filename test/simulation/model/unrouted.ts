// Events that are stored but not placed in all their lanes, and replays, in the reference model (L2, L16).
import { addDelay } from '../../../src/clock.ts'
import type { PlaceCall, PlaceItem, PlaceReply, ClaimUnroutedCall } from '../../../src/store/contract/index.ts'
import { addMark, placeLive, placeReplay } from './place.ts'
import type { Model, ModelMark } from './state.ts'

/** The unrouted events that are leased, in order. The store draws their tokens, and shows their ids here for the first time. */
export function unrouted(model: Model, call: ClaimUnroutedCall): readonly ModelMark[] {
  const due = model.marks
    .filter((mark) => mark.due <= model.now && call.reasons.includes(mark.reason))
    .filter((mark) => mark.flow === '' || call.flows.includes(mark.flow))
    .toSorted((a, b) => a.due - b.due || a.order - b.order)
    .slice(0, call.n)
  for (const mark of due) mark.due = addDelay(model.now, call.lease)
  return due
}

export type Placed = PlaceReply['results'][number]

/** `seen` matters only if an event that was no longer needed may still exist for a replay. */
export function place(model: Model, call: PlaceCall, seen: readonly Placed[]): readonly Placed[] {
  return call.items.map((item, n) => {
    if (item.kind === 'replay') return replay(model, call.routes, item, seen[n])
    return placeMark(model, call.routes, item)
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

function placeMark(model: Model, routes: number, item: Extract<PlaceItem, { kind: 'mark' }>): Placed {
  if (routes < model.routes) return 'routes-old'
  if (model.placedMarks.get(item.id) === item.token) return 'lost'
  const mark = model.marks.find((other) => other.id === item.id)
  if (mark === undefined || mark.token !== item.token || mark.due <= model.now) return 'lost'
  const known = model.events.get(mark.event)
  if (known === undefined || known.gone === 'yes') return 'gone'
  model.placedMarks.set(item.id, item.token)
  model.marks = model.marks.filter((other) => other !== mark)
  for (const one of item.placements) if (!known.lanes.has(one.lane)) placeLive(model, known.event, one)
  for (const one of item.unrouted) addMark(model, mark.event, one, one.after)
  return 'placed'
}
