// Marks: events that are stored but not yet in all their lanes are leased, routed and placed, once (L2, L16).
import { later } from '../../clock.ts'
import type {
  LeasedMark,
  PlaceCall,
  PlaceItem,
  PlaceReply,
  Reply,
  UnroutedCall,
  UnroutedReply,
} from '../contract/index.ts'
import { addMark, appendTaken, distinct, enter } from './append.ts'
import type { EventRow } from './tables.ts'
import { LanesAtHand, type Work } from './work.ts'

export function unrouted(work: Work, call: UnroutedCall): Omit<UnroutedReply, keyof Reply> {
  const { outbox } = work.tables
  const { flows, elsewhere } = call
  const isKnown = (flow: string): boolean =>
    flow === '' || elsewhere === undefined || flows.includes(flow) || elsewhere.includes(flow)
  const taken = call.reasons.includes('outbox') ? appendTaken(work, outbox.take(call.n), isKnown) : []
  return { marks: leased(work, call), taken }
}

function leased(work: Work, call: UnroutedCall): readonly LeasedMark[] {
  const { marks, events } = work.tables
  return marks.due(work.now, call.reasons, call.flows, call.n).flatMap((mark) => {
    const event = events.bySeq(mark.event)
    if (event === undefined || event.purgedHash !== '') {
      marks.remove(mark.id)
      return []
    }
    const lease = { ...mark, token: work.draw(), tries: mark.tries + 1, due: later(work.now, call.lease) }
    marks.put(lease)
    const { id, token, tries, flow, reason, error } = lease
    return [{ id, token, tries, flow, reason, error, event: plain(event) }]
  })
}

function plain(event: EventRow): LeasedMark['event'] {
  const { id, source, type, time, tenant, subject, attributes, body, arrived } = event
  return { id, source, type, time, tenant, subject, attributes, body, arrived }
}

type Placed = PlaceReply['results'][number]

export function placeItems(work: Work, call: PlaceCall): readonly Placed[] {
  if (call.routes < work.tables.routes()) return call.items.map(() => 'routes-old')
  const lanes = new LanesAtHand(work)
  const results = call.items.map((item) =>
    item.kind === 'mark' ? fromMark(work, lanes, item) : replay(work, lanes, item),
  )
  lanes.save()
  return results
}

function fromMark(work: Work, lanes: LanesAtHand, item: Extract<PlaceItem, { kind: 'mark' }>): Placed {
  const { marks, events } = work.tables
  const mark = marks.get(item.id)
  if (mark === undefined || mark.token !== item.token || mark.due <= work.now) return 'lost'
  marks.remove(mark.id)
  const event = events.bySeq(mark.event)
  if (event === undefined || event.purgedHash !== '') return 'gone'
  const fresh = distinct(item.places).filter((one) => !event.lanes.includes(one.lane))
  const entering = { seq: event.seq, size: event.body.length, tenant: event.tenant, rank: 0 } as const
  for (const one of fresh) enter(work, lanes, one, entering)
  if (fresh.length > 0) events.setLanes(event.seq, [...event.lanes, ...fresh.map((one) => one.lane)])
  for (const left of item.marks) addMark(work, event.seq, left, { after: left.after, since: mark.since })
  return 'placed'
}

function replay(work: Work, lanes: LanesAtHand, item: Extract<PlaceItem, { kind: 'replay' }>): Placed {
  const { events, small } = work.tables
  const event = events.byId(item.event)
  if (event === undefined || event.purgedHash !== '') return 'gone'
  if (small.replayedBefore(item.replay, event.seq, work.now)) return 'already'
  const entering = { seq: event.seq, size: event.body.length, tenant: event.tenant, rank: 1 } as const
  const places = distinct(item.places)
  for (const one of places) enter(work, lanes, one, entering)
  const fresh = places.map((one) => one.lane).filter((lane) => !event.lanes.includes(lane))
  if (fresh.length > 0) events.setLanes(event.seq, [...event.lanes, ...fresh])
  return 'placed'
}
