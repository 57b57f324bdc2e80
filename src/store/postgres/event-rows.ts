// How an event is written as a row and read from it.
import type { Receipt } from '../contract/index.ts'
import type { EventRow, PlacedEvent } from '../rules/tables.ts'
import { insertInto, rowType, withRows, updateOf, type RowType, type WrittenRow } from './columns.ts'
import type { Statement } from './part.ts'
import { bytes, number, text, texts, written, type Row } from './values.ts'

const COLUMNS = `seq, id, identity, dedupe_until, source, type, time, tenant, subject, attributes, arrived, lanes, purged_hash, doomed,
  request, body`
export const FROM_EVENTS: string = `select ${COLUMNS} from events`
export const ADD_EVENTS: RowType = rowType('add_events', {
  seq: 'bigint',
  id: 'text',
  identity: 'text',
  dedupe_until: 'bigint',
  source: 'text',
  type: 'text',
  time: 'bigint',
  tenant: 'text',
  subject: 'text',
  attributes: 'text',
  arrived: 'bigint',
  lanes: 'text[]',
  size: 'int',
  request: 'bytea',
  body: 'bytea',
})
const ADD = insertInto('events', ADD_EVENTS)
/** What may become of one that is stored. */
export const SET_EVENTS: RowType = rowType('set_events', {
  seq: 'bigint',
  identity: 'text',
  subject: 'text',
  attributes: 'text',
  lanes: 'text[]',
  purged_hash: 'text',
  doomed: 'boolean',
})
export const SET: string = updateOf('events', SET_EVENTS)
export const WIPE: string = `update events set request = '', body = '' where seq = any($1)`
export const PLACED_COLUMNS: readonly string[] = [
  'seq',
  'id',
  'source',
  'type',
  'time',
  'tenant',
  'subject',
  'attributes',
  'arrived',
  'body',
]
export const PLACED_EVENTS: string = `select ${PLACED_COLUMNS.join(', ')} from events where seq = any($1) and purged_hash = ''`

/** Who is given stored events reads so many bytes at once, or the one event that has more: all of them are in memory together. */
export const BYTES_AT_ONCE = 8_388_608

export function sizeOf(event: EventRow | undefined): number {
  return event === undefined ? 0 : event.body.length + event.request.length
}

export function changesOf(event: EventRow): WrittenRow {
  return {
    seq: event.seq,
    identity: event.identity === '' ? null : event.identity,
    subject: written(event.subject),
    attributes: written(event.attributes),
    lanes: event.lanes,
    purged_hash: event.purgedHash,
    doomed: event.doomed,
  }
}

function rowOf(event: EventRow): WrittenRow {
  const { identity, subject, attributes, lanes } = changesOf(event)
  return {
    seq: event.seq,
    id: written(event.id),
    identity: identity ?? null,
    dedupe_until: event.dedupeUntil,
    source: written(event.source),
    type: written(event.type),
    time: event.time,
    tenant: written(event.tenant),
    subject: subject ?? '',
    attributes: attributes ?? '',
    arrived: event.arrived,
    lanes: lanes ?? [],
    size: event.body.length,
    request: event.request,
    body: event.body,
  }
}

/** In the order of their identities: of two who bring the same ones at once, one waits for the other, and not each. */
export function addEvents(events: readonly EventRow[]): readonly Statement[] {
  const sorted = events.toSorted((one, other) => (one.identity < other.identity ? -1 : 1))
  return withRows(ADD, ADD_EVENTS, sorted.map(rowOf))
}

export function eventOf(row: Row): EventRow {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    identity: text(row[2]),
    dedupeUntil: number(row[3]),
    source: text(row[4]),
    type: text(row[5]),
    time: number(row[6]),
    tenant: text(row[7]),
    subject: text(row[8]),
    attributes: text(row[9]),
    arrived: number(row[10]),
    lanes: texts(row[11]),
    purgedHash: text(row[12]),
    doomed: row[13] === true,
    request: bytes(row[14]),
    body: bytes(row[15]),
  }
}

export function receiptOf(row: Row): Receipt {
  return { at: number(row[0]), kind: text(row[1]) as Receipt['kind'], event: text(row[2]), bodyHash: text(row[3]) }
}

/** `from`: the first of its columns. */
export function placedOf(row: Row, from = 0): PlacedEvent {
  return {
    seq: number(row[from]),
    id: text(row[from + 1]),
    source: text(row[from + 2]),
    type: text(row[from + 3]),
    time: number(row[from + 4]),
    tenant: text(row[from + 5]),
    subject: text(row[from + 6]),
    attributes: text(row[from + 7]),
    arrived: number(row[from + 8]),
    body: bytes(row[from + 9]),
  }
}
