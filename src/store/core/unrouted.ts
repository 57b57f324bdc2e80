// `claimUnrouted` and `placeItems` lease, route and place events that are stored but not yet in all their lanes (L2,
// L16).
import { addDelay } from '../../clock.ts'
import { NO_SKIPS, formatRoutingNote, mergeSkips } from '../../model/routing.ts'
import type {
  LeasedUnroutedEvent,
  PlaceCall,
  PlaceItem,
  PlaceReply,
  ClaimUnroutedCall,
  ClaimUnroutedReply,
} from '../contract/index.ts'
import { addUnrouted, appendFromOutbox, removeDuplicateLanes, placeInLane, addEventFeedEntry } from './append.ts'
import type { EventRow, ReplyBody } from './tables.ts'
import { LaneSession, type CommitContext } from './commit-context.ts'

export function claimUnrouted(work: CommitContext, call: ClaimUnroutedCall): ReplyBody<ClaimUnroutedReply> {
  const { outbox } = work.tables
  const { flows, elsewhere } = call
  const isKnown = (flow: string): boolean =>
    flow === '' || elsewhere === undefined || flows.includes(flow) || elsewhere.includes(flow)
  const taken = call.reasons.includes('outbox') ? appendFromOutbox(work, outbox.take(call.n), isKnown) : []
  return { unrouted: leaseUnrouted(work, call), takenFromOutbox: taken }
}

function leaseUnrouted(work: CommitContext, call: ClaimUnroutedCall): readonly LeasedUnroutedEvent[] {
  const { unrouted, events } = work.tables
  return unrouted.findDue(work.now, call.reasons, call.flows, call.n).flatMap((entry) => {
    const event = events.findBySeq(entry.event)
    if (event === undefined || event.purgedHash !== '') {
      unrouted.remove(entry.id)
      return []
    }
    const lease = { ...entry, token: work.draw(), tries: entry.tries + 1, due: addDelay(work.now, call.lease) }
    unrouted.put(lease)
    const { id, token, tries, flow, reason, error } = lease
    return [{ id, token, tries, flow, reason, error, event: toEvent(event) }]
  })
}

function toEvent(event: EventRow): LeasedUnroutedEvent['event'] {
  const { id, source, type, time, tenant, subject, attributes, body, arrived } = event
  return { id, source, type, time, tenant, subject, attributes, body, arrived }
}

type PlaceResult = PlaceReply['results'][number]

export function placeItems(work: CommitContext, call: PlaceCall): readonly PlaceResult[] {
  if (call.routes < work.tables.routes()) return call.items.map(() => 'routes-old')
  const lanes = new LaneSession(work)
  const results = call.items.map((item) =>
    item.kind === 'unrouted' ? placeUnrouted(work, lanes, item) : placeReplayItem(work, lanes, item),
  )
  lanes.save()
  return results
}

function placeUnrouted(
  work: CommitContext,
  lanes: LaneSession,
  item: Extract<PlaceItem, { kind: 'unrouted' }>,
): PlaceResult {
  const { unrouted, events } = work.tables
  const entry = unrouted.get(item.id)
  if (entry === undefined || entry.token !== item.token || entry.due <= work.now) return 'lost'
  unrouted.remove(entry.id)
  const event = events.findBySeq(entry.event)
  if (event === undefined || event.purgedHash !== '') return 'gone'
  const fresh = removeDuplicateLanes(item.placements).filter((one) => !event.lanes.includes(one.lane))
  const entering = { seq: event.seq, size: event.body.length, tenant: event.tenant, rank: 0 } as const
  for (const one of fresh) placeInLane(work, lanes, one, entering)
  for (const left of item.unrouted) addUnrouted(work, event.seq, left, { after: left.after, since: entry.since })
  const routing = {
    lanes: [...event.lanes, ...fresh.map((one) => one.lane)],
    skips: mergeSkips(event.skips, item.skips ?? NO_SKIPS, item.placements),
  }
  saveRouting(work, event, routing)
  if (item.placements.length + item.unrouted.length === 0) addUnplacedFeedEntry(work, event, entry.flow, routing)
  return 'placed'
}

function placeReplayItem(
  work: CommitContext,
  lanes: LaneSession,
  item: Extract<PlaceItem, { kind: 'replay' }>,
): PlaceResult {
  const { events, small } = work.tables
  const event = events.findById(item.event)
  if (event === undefined || event.purgedHash !== '') return 'gone'
  const wanted = removeDuplicateLanes(item.placements)
  const placements = item.once === true ? wanted.filter((one) => !event.lanes.includes(one.lane)) : wanted
  if (placements.length === 0 || small.markReplayed(item.replay, event.seq, work.now)) return 'already'
  const { replay } = item
  const entering = { seq: event.seq, size: event.body.length, tenant: event.tenant, rank: 1, replay } as const
  for (const one of placements) placeInLane(work, lanes, one, entering)
  const fresh = placements.map((one) => one.lane).filter((lane) => !event.lanes.includes(lane))
  saveRouting(work, event, { lanes: [...event.lanes, ...fresh], skips: mergeSkips(event.skips, NO_SKIPS, placements) })
  return 'placed'
}

type EventRouting = Pick<EventRow, 'lanes' | 'skips'>

/** Lanes are only added and skips rarely change, so the row is written only if one did. */
function saveRouting(work: CommitContext, event: EventRow, routing: EventRouting): void {
  if (routing.lanes.length === event.lanes.length && routing.skips === event.skips) return
  work.tables.events.setRouting(event.seq, routing)
}

/** Live views have shown the arrival of the event. This entry shows that a flow does not take it. */
function addUnplacedFeedEntry(
  work: CommitContext,
  event: EventRow,
  flow: string,
  { lanes, skips }: EventRouting,
): void {
  const unrouted = lanes.length + skips.length === 0 ? work.tables.unrouted.findByEvent(event.seq) : []
  const note = formatRoutingNote({ lanes, unrouted, skips })
  if (note !== '') addEventFeedEntry(work, event, { flow, note, placements: [] })
}
