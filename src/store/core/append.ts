// `appendEvents` stores events once, with their placements in the same commit (L2, L3, L4, L10, L18).
import { hash } from 'node:crypto'
import { addDelay, type Millis } from '../../clock.ts'
import { ID_LENGTH_MAX, isEventId, isEventTime } from '../../model/event.ts'
import { NOT_SERVED_HERE } from '../../model/flow.ts'
import { findKeyFault } from '../../model/identity.ts'
import type { Rank } from '../../model/lane.ts'
import type { RoutableEvent } from '../../model/new-event.ts'
import { computeCap, placeEvent } from '../../model/place.ts'
import { NO_SKIPS, formatRoutingNote } from '../../model/routing.ts'
import type { AppendCall, AppendResult, UnroutedFlow, EventToStore, Placement, OutboxEvent } from '../contract/index.ts'
import type { EventRow } from './tables.ts'
import { LaneSession, toFeedLane, type CommitContext, type NewFeedEntry } from './commit-context.ts'

const LANES_PER_EVENT_MAX = 100
export const STORED: AppendResult = { kind: 'stored' }

export function appendEvents(work: CommitContext, call: AppendCall): readonly AppendResult[] {
  if (call.routes < work.tables.routes()) return call.events.map(() => ({ kind: 'routes-old' }))
  const lanes = new LaneSession(work)
  const results = call.events.map((event) => appendEvent(work, lanes, event, event.unrouted))
  lanes.save()
  return results
}

/**
 * `appendPublished` stores the events of a handler within its settlement (L2b). Old routes must not fail a settlement, so such
 * events are routed later.
 */
export function appendPublished(
  work: CommitContext,
  events: readonly EventToStore[],
  routes: number,
): readonly AppendResult[] {
  const stale = routes < work.tables.routes()
  const lanes = new LaneSession(work)
  const results = events.map((event) =>
    appendEvent(
      work,
      lanes,
      stale ? { ...event, placements: [], skips: NO_SKIPS } : event,
      stale ? [NOT_ROUTED] : event.unrouted,
    ),
  )
  lanes.save()
  return results
}

/**
 * `appendFromOutbox` stores outbox events as unrouted events; they are routed later (L17). An event that cannot be stored stays in
 * the outbox. `isKnown` returns whether some process serves the flow.
 */
export function appendFromOutbox(
  work: CommitContext,
  events: readonly EventToStore[],
  isKnown: (flow: string) => boolean,
): readonly OutboxEvent[] {
  const lanes = new LaneSession(work)
  return events.map((event) => {
    const unrouted = event.unrouted.map((entry) => (isKnown(entry.flow) ? entry : toUnknownFlow(entry.flow)))
    const result = appendEvent(work, lanes, event, unrouted)
    if (result.kind === 'refused') work.tables.outbox.refuse(event, `${result.field}: ${result.fix}`)
    const { id, source, type } = event
    return { id, source, type, result, unrouted }
  })
}

function toUnknownFlow(flow: string): UnroutedFlow {
  return { flow, reason: 'unknown-flow', error: NOT_SERVED_HERE }
}

function appendEvent(
  work: CommitContext,
  lanes: LaneSession,
  event: EventToStore,
  unrouted: readonly UnroutedFlow[],
): AppendResult {
  const fault = validateEvent(event)
  if (fault !== undefined) return fault
  const placements = removeDuplicateLanes(event.placements)
  const seq = insertEvent(work, event, placements)
  if (typeof seq !== 'number') return seq
  for (const one of placements)
    placeInLane(work, lanes, one, { seq, size: event.body.length, tenant: event.tenant, rank: 0 })
  for (const entry of unrouted) addUnrouted(work, seq, entry, { after: 0, since: work.now })
  const note = formatRoutingNote({ lanes: placements, unrouted, skips: event.skips ?? NO_SKIPS })
  addEventFeedEntry(work, event, { flow: '', note, placements })
  return STORED
}

/** `addEventFeedEntry` shows live views an event and the result of its routing. */
export function addEventFeedEntry(work: CommitContext, event: EventOfFeed, routed: RoutedOfFeed): void {
  work.addFeedEntry(createEventFeedEntry(event, routed, work.now))
}

type EventOfFeed = Pick<EventToStore, 'id' | 'type' | 'source'>

interface RoutedOfFeed {
  readonly flow: string
  readonly note: string
  readonly placements: readonly Placement[]
}

export function createEventFeedEntry(
  { id, type, source }: EventOfFeed,
  { flow, note, placements }: RoutedOfFeed,
  at: Millis,
): NewFeedEntry {
  const lanes = placements.length === 0 ? undefined : placements.slice(0, MAX_FEED_LANES).map(toFeedLane)
  const routed = { ...(note !== '' && { note }), ...(lanes !== undefined && { lanes }) }
  return { kind: 'event', flow, id, detail: type, source, at, ...routed }
}

const MAX_FEED_LANES = 8

/** Returns the row of the event, or the reason why it is not stored. */
function insertEvent(
  work: CommitContext,
  event: EventToStore,
  placements: readonly Placement[],
): number | AppendResult {
  const { events } = work.tables
  const arrival = {
    arrived: work.now,
    dedupeUntil: addDelay(work.now, event.dedupeFor),
    lanes: placements.map((one) => one.lane),
    skips: event.skips ?? NO_SKIPS,
  }
  const seq = events.insert(event, arrival)
  if (seq !== false) return seq
  const known = events.findByIdentity(event.identity)
  const isKnown = known !== undefined && (known.dedupeUntil > work.now || known.id === event.id)
  if (isKnown) return resolveKnownIdentity(work, event, known)
  if (known !== undefined) events.forgetIdentity(known.seq)
  const second = events.insert(event, arrival)
  if (second !== false) return second
  // The identity is free, so another event has the same id.
  const holder = events.findById(event.id)
  return holder === undefined ? refuse('id', 'use a fresh id') : recordReceipt(work, event, holder, 'conflict')
}

/** Handles a known identity: returns `repeated` for our own lost reply, `duplicate` or `conflict`. */
function resolveKnownIdentity(work: CommitContext, event: EventToStore, known: EventRow): AppendResult {
  const same =
    known.purgedHash === '' ? Buffer.compare(known.body, event.body) === 0 : known.purgedHash === hashBody(event.body)
  if (same && known.id === event.id) return { kind: 'repeated' }
  return recordReceipt(work, event, known, same ? 'duplicate' : 'conflict')
}

function recordReceipt(
  work: CommitContext,
  event: EventToStore,
  known: EventRow,
  kind: 'duplicate' | 'conflict',
): AppendResult {
  work.tables.events.addReceipt(known.seq, { at: work.now, kind, event: event.id, bodyHash: hashBody(event.body) })
  return { kind, of: known.id }
}

export function hashBody(body: Uint8Array): string {
  return hash('sha256', body, 'base64url')
}

export interface EventToPlace {
  readonly seq: number
  readonly size: number
  readonly tenant: string
  readonly rank: Rank
  /** The replay that places the event. Only with rank 1. */
  readonly replay?: string
}

/** `placeInLane` gives the event its placement in one lane. */
export function placeInLane(work: CommitContext, lanes: LaneSession, to: Placement, entering: EventToPlace): void {
  const lane = lanes.get({ id: to.lane, flow: to.flow, key: to.key, group: to.group, tenant: entering.tenant })
  const placed = placeEvent(lane, { ...to, rank: entering.rank, size: entering.size }, work)
  const cap = entering.rank === 0 ? computeCap(to, work.now) : work.now
  const { rank, seq: event, size, replay } = entering
  const placement = { pos: placed.tail, event, size, cap }
  work.tables.placements.add(placed, rank, replay === undefined ? placement : { ...placement, replay })
  lanes.set(placed)
  // A deadline that only moves later needs no hint: a process that wakes too early for it reads the new one.
  if (placed.due < lane.due || placed.health !== lane.health) work.markDue(to.flow)
  if (lane.waiting + lane.replays === 0 && lane.run === undefined) {
    work.addHint({ kind: 'opened', flow: to.flow, key: to.key })
  }
  const run = placed.run
  if (run !== undefined && run.cancel && lane.run?.cancel === false) {
    work.addHint({ kind: 'cancel', lane: placed.id, token: run.token })
  }
}

/** `appendUnplaced` stores an event of the engine that no process has routed. Some process routes it within a second (L2). */
export function appendUnplaced(work: CommitContext, event: RoutableEvent): void {
  appendEvent(work, new LaneSession(work), { ...event, placements: [], unrouted: [] }, [NOT_ROUTED])
}

const NOT_ROUTED: UnroutedFlow = { flow: '', reason: 'routes-old', error: '' }

interface UnroutedTimes {
  readonly after: Millis
  /** An event that fails to be routed again keeps its age. */
  readonly since: Millis
}

export function addUnrouted(
  work: CommitContext,
  event: number,
  entry: UnroutedFlow,
  { after, since }: UnroutedTimes,
): void {
  const { flow, reason, error } = entry
  const due = addDelay(work.now, after)
  work.tables.unrouted.put({ id: work.draw(), event, flow, reason, error, since, due, tries: 0, token: 0 })
}

/** `removeDuplicateLanes` merges repeated keys (L11). */
export function removeDuplicateLanes(placements: readonly Placement[]): readonly Placement[] {
  if (placements.length < 2) return placements
  const seen = new Set<string>()
  return placements.filter((one) => !seen.has(one.lane) && seen.add(one.lane))
}

/** `validateEvent` returns why the event cannot be stored, or undefined. */
export function validateEvent(event: EventToStore): AppendResult | undefined {
  if (!isEventId(event.id)) return refuse('id', `1 to ${ID_LENGTH_MAX} characters`)
  for (const name of TEXT_FIELDS) if (!event[name].isWellFormed()) return refuse(name, 'well-formed Unicode')
  if (!isEventTime(event.time)) return refuse('time', 'whole milliseconds since 1970, as far as a Date goes')
  if (!(event.dedupeFor >= 0)) return refuse('dedupeFor', 'a number, 0 or above')
  if (event.identity === '') return refuse('identity', 'hash source, tenant and dedupe id')
  if (event.placements.length > LANES_PER_EVENT_MAX)
    return refuse('placements', 'at most 100 lanes; store the event as unrouted with fan-out')
  for (const one of event.placements) {
    if (findKeyFault(one.key) !== undefined) return refuse('placements.key', 'well-formed text of at most 16 KB')
    for (const name of WINDOW_FIELDS) {
      // `!(x >= 0)` also rejects NaN, for which every comparison is false.
      if (!(one[name] >= 0)) return refuse(`placements.${name}`, 'a number, 0 or above')
    }
  }
  return undefined
}

const TEXT_FIELDS = ['id', 'source', 'type', 'tenant', 'subject', 'attributes'] as const
const WINDOW_FIELDS = ['quiet', 'max', 'maxEvents', 'maxBytes', 'jitter'] as const

function refuse(field: string, fix: string): AppendResult {
  return { kind: 'refused', field, fix }
}
