// Converts events to rows and back.
import { serializeSkips } from '../../model/routing.ts'
import type { EventRow, PlacedEvent } from '../core/tables.ts'
import { buildInsert, defineRowType, bindRows, buildUpdate, type RowType, type RowValues } from './columns.ts'
import type { Statement } from './row-cache.ts'
import { EVENT_COLUMNS } from '../sql/rows.ts'
import { bytes, number, text, escapeText, type Row } from './values.ts'

export const SELECT_EVENTS: string = `select ${EVENT_COLUMNS} from events`
export const ADD_EVENTS: RowType = defineRowType('add_events', {
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
  skips: 'text',
  size: 'int',
  request: 'bytea',
  body: 'bytea',
})
const ADD = buildInsert('events', ADD_EVENTS)
/** `SET_EVENTS` holds the columns of a stored event that may change. */
export const SET_EVENTS: RowType = defineRowType('set_events', {
  seq: 'bigint',
  identity: 'text',
  subject: 'text',
  attributes: 'text',
  lanes: 'text[]',
  skips: 'text',
  purged_hash: 'text',
  doomed: 'boolean',
})
export const UPDATE_EVENTS: string = buildUpdate('events', SET_EVENTS)
export const WIPE_EVENTS: string = `update events set request = '', body = '' where seq = any($1)`
export const SELECT_PLACED_EVENTS = `select seq, id, source, type, time, tenant, subject, attributes, arrived, body from events
  where seq = any($1) and purged_hash = ''`

/**
 * A read of stored events returns at most this many bytes, or the one event that is larger: all of them are in memory together.
 */
export const MAX_BYTES_PER_READ = 8_388_608

export function getEventSize(event: EventRow | undefined): number {
  return event === undefined ? 0 : event.body.length + event.request.length
}

export function toUpdateColumns(event: EventRow): RowValues {
  return {
    seq: event.seq,
    identity: event.identity === '' ? null : event.identity,
    subject: escapeText(event.subject),
    attributes: escapeText(event.attributes),
    lanes: event.lanes,
    skips: serializeSkips(event.skips),
    purged_hash: event.purgedHash,
    doomed: event.doomed,
  }
}

function toInsertColumns(event: EventRow): RowValues {
  const { identity, subject, attributes, lanes, skips } = toUpdateColumns(event)
  return {
    seq: event.seq,
    id: escapeText(event.id),
    identity: identity ?? null,
    dedupe_until: event.dedupeUntil,
    source: escapeText(event.source),
    type: escapeText(event.type),
    time: event.time,
    tenant: escapeText(event.tenant),
    subject: subject ?? '',
    attributes: attributes ?? '',
    arrived: event.arrived,
    lanes: lanes ?? [],
    skips: skips ?? '',
    size: event.body.length,
    request: event.request,
    body: event.body,
  }
}

/**
 * The inserts are ordered by identity. If two transactions insert the same events, one waits for the other; without the order,
 * each could wait for the other.
 */
export function buildEventInserts(events: readonly EventRow[]): readonly Statement[] {
  const sorted = events.toSorted((one, other) => (one.identity < other.identity ? -1 : 1))
  return bindRows(ADD, ADD_EVENTS, sorted.map(toInsertColumns))
}

export function toPlacedEvent(row: Row): PlacedEvent {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    source: text(row[2]),
    type: text(row[3]),
    time: number(row[4]),
    tenant: text(row[5]),
    subject: text(row[6]),
    attributes: text(row[7]),
    arrived: number(row[8]),
    body: bytes(row[9]),
  }
}
