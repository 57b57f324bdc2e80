// append: events are stored once and take their places in the same commit (L2, L3, L4, L10, L18).
import { hash } from 'node:crypto'
import { later, type Millis } from '../../clock.ts'
import { ID_LENGTH_MAX, isId, isTime } from '../../model/event.ts'
import { WAS_NAMED } from '../../model/flow.ts'
import { keyFault } from '../../model/identity.ts'
import type { Rank } from '../../model/lane.ts'
import { place } from '../../model/place.ts'
import type { AppendCall, Appended, Mark, NewEvent, Place, TakenEvent } from '../contract/index.ts'
import type { EventRow } from './tables.ts'
import { LanesAtHand, type Work } from './work.ts'

const LANES_PER_EVENT_MAX = 100
const STORED: Appended = { kind: 'stored' }

export function append(work: Work, call: AppendCall): readonly Appended[] {
  if (call.routes < work.tables.routes()) return call.events.map(() => ({ kind: 'routes-old' }))
  const lanes = new LanesAtHand(work)
  const results = call.events.map((event) => appendOne(work, lanes, event, event.marks))
  lanes.save()
  return results
}

/** What a handler published, inside its settlement (L2b). Old routes cannot fail that: the event is routed later. */
export function appendPublished(work: Work, events: readonly NewEvent[], routes: number): readonly Appended[] {
  const stale = routes < work.tables.routes()
  const mark: Mark = { flow: '', reason: 'routes-old', error: '' }
  const lanes = new LanesAtHand(work)
  const results = events.map((event) =>
    appendOne(work, lanes, stale ? { ...event, places: [] } : event, stale ? [mark] : event.marks),
  )
  lanes.save()
  return results
}

/**
 * What comes out of the outbox: it is stored with its marks, and routed after that (L17). What cannot be stays there.
 * `isKnown`: whether somebody serves the flow.
 */
export function appendTaken(
  work: Work,
  events: readonly NewEvent[],
  isKnown: (flow: string) => boolean,
): readonly TakenEvent[] {
  const lanes = new LanesAtHand(work)
  return events.map((event) => {
    const marks = event.marks.map((mark) => (isKnown(mark.flow) ? mark : named(mark.flow)))
    const result = appendOne(work, lanes, event, marks)
    if (result.kind === 'refused') work.tables.outbox.keep(event, `${result.field}: ${result.fix}`)
    const { id, source, type } = event
    return { id, source, type, result, marks }
  })
}

function named(flow: string): Mark {
  return { flow, reason: 'unknown-flow', error: WAS_NAMED }
}

function appendOne(work: Work, lanes: LanesAtHand, event: NewEvent, marks: readonly Mark[]): Appended {
  const fault = faultOf(event)
  if (fault !== undefined) return fault
  const places = distinct(event.places)
  const seq = insert(work, event, places)
  if (typeof seq !== 'number') return seq
  for (const one of places) enter(work, lanes, one, { seq, size: event.body.length, tenant: event.tenant, rank: 0 })
  for (const mark of marks) addMark(work, seq, mark, { after: 0, since: work.now })
  work.note({ kind: 'event', flow: '', id: event.id, detail: event.type, source: event.source })
  return STORED
}

/** The row of the event, or why it is not stored. */
function insert(work: Work, event: NewEvent, places: readonly Place[]): number | Appended {
  const { events } = work.tables
  const arrival = {
    arrived: work.now,
    dedupeUntil: later(work.now, event.dedupeFor),
    lanes: places.map((one) => one.lane),
  }
  const seq = events.insert(event, arrival)
  if (seq !== false) return seq
  const known = events.byIdentity(event.identity)
  const isKnown = known !== undefined && (known.dedupeUntil > work.now || known.id === event.id)
  if (isKnown) return again(work, event, known)
  if (known !== undefined) events.forgetIdentity(known.seq)
  const second = events.insert(event, arrival)
  if (second !== false) return second
  // The identity is free, so that it is the id that another event has.
  const holder = events.byId(event.id)
  return holder === undefined ? refused('id', 'use a fresh id') : told(work, event, holder, 'conflict')
}

/** The identity is known: tells our own lost reply, a duplicate and a conflict apart. */
function again(work: Work, event: NewEvent, known: EventRow): Appended {
  const same =
    known.purgedHash === '' ? Buffer.compare(known.body, event.body) === 0 : known.purgedHash === hashOf(event.body)
  if (same && known.id === event.id) return { kind: 'repeated' }
  return told(work, event, known, same ? 'duplicate' : 'conflict')
}

function told(work: Work, event: NewEvent, known: EventRow, kind: 'duplicate' | 'conflict'): Appended {
  work.tables.events.addReceipt(known.seq, { at: work.now, kind, event: event.id, bodyHash: hashOf(event.body) })
  return { kind, of: known.id }
}

export function hashOf(body: Uint8Array): string {
  return hash('sha256', body, 'base64url')
}

export interface Entering {
  readonly seq: number
  readonly size: number
  readonly tenant: string
  readonly rank: Rank
}

/** The event takes its place in one lane. */
export function enter(work: Work, lanes: LanesAtHand, to: Place, entering: Entering): void {
  const lane = lanes.get({ id: to.lane, flow: to.flow, key: to.key, group: to.group, tenant: entering.tenant })
  const placed = place(lane, { ...to, rank: entering.rank, size: entering.size }, work)
  work.tables.places.add(placed, entering.rank, { pos: placed.tail, event: entering.seq, size: entering.size })
  lanes.set(placed)
  // One that is only pushed back is nobody's news: who wakes up for it too early learns it then.
  if (placed.due < lane.due || placed.line !== lane.line) work.due(to.flow)
  if (lane.waiting + lane.replays === 0 && lane.run === undefined) {
    work.hint({ kind: 'opened', flow: to.flow, key: to.key })
  }
  const run = placed.run
  if (run !== undefined && run.cancel && lane.run?.cancel === false) {
    work.hint({ kind: 'cancel', lane: placed.id, token: run.token })
  }
}

interface MarkTimes {
  readonly after: Millis
  /** One that is tried in vain keeps its age. */
  readonly since: Millis
}

export function addMark(work: Work, event: number, mark: Mark, { after, since }: MarkTimes): void {
  const { flow, reason, error } = mark
  const due = later(work.now, after)
  work.tables.marks.put({ id: work.draw(), event, flow, reason, error, since, due, tries: 0, token: 0 })
}

/** Repeated keys collapse (L11). */
export function distinct(places: readonly Place[]): readonly Place[] {
  if (places.length < 2) return places
  const seen = new Set<string>()
  return places.filter((one) => !seen.has(one.lane) && seen.add(one.lane))
}

function faultOf(event: NewEvent): Appended | undefined {
  if (!isId(event.id)) return refused('id', `1 to ${ID_LENGTH_MAX} characters`)
  for (const name of TEXTS) if (!event[name].isWellFormed()) return refused(name, 'well-formed Unicode')
  if (!isTime(event.time)) return refused('time', 'whole milliseconds since 1970, as far as a Date goes')
  if (!(event.dedupeFor >= 0)) return refused('dedupeFor', 'a number, 0 or above')
  if (event.identity === '') return refused('identity', 'hash source, tenant and dedupe id')
  if (event.places.length > LANES_PER_EVENT_MAX) return refused('places', 'mark the event as fan-out instead')
  for (const one of event.places) {
    if (keyFault(one.key) !== undefined) return refused('places.key', 'well-formed text of at most 16 KB')
    for (const name of WINDOW_NUMBERS) {
      // Also true of NaN, which every comparison would let through.
      if (!(one[name] >= 0)) return refused(`places.${name}`, 'a number, 0 or above')
    }
  }
  return undefined
}

const TEXTS = ['id', 'source', 'type', 'tenant', 'subject', 'attributes'] as const
const WINDOW_NUMBERS = ['quiet', 'max', 'maxEvents', 'maxBytes', 'jitter'] as const

function refused(field: string, fix: string): Appended {
  return { kind: 'refused', field, fix }
}
