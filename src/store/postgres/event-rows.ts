// How an event is written as rows and read from them: what it is in one, its bytes in another.
import type { Receipt } from '../contract/index.ts'
import type { EventRow, PlacedEvent } from '../rules/tables.ts'
import { insertInto, type Columns, type WrittenRow } from './columns.ts'
import { upsert, type Db } from './part.ts'
import { bytes, number, text, texts, written, type Row } from './values.ts'

const COLUMNS = `e.seq, e.id, e.identity, e.dedupe_until, e.source, e.type, e.time, e.tenant, e.subject, e.attributes, e.arrived,
  e.lanes, e.purged_hash, e.doomed, p.request, p.body`
export const FROM_EVENTS: string = `select ${COLUMNS} from events e left join payloads p on p.seq = e.seq`
export const EVENT_META: Columns = {
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
}
export const ADD_EVENTS: string = insertInto('events', EVENT_META)
/** The bytes of all of them in one piece: where each begins, how long its request is, and how long its body. */
const ADD_PAYLOADS = `insert into payloads (seq, request, body)
  select seq, substr($5::bytea, at, request), substr($5::bytea, at + request, body)
  from unnest($1::bigint[], $2::int[], $3::int[], $4::int[]) as v (seq, at, request, body)`
export const PUT_EVENTS: string = upsert('events', [...Object.keys(EVENT_META), 'purged_hash', 'doomed'], ['seq'])
export const PLACED_EVENTS: string = `select e.seq, e.id, e.source, e.type, e.time, e.tenant, e.subject, e.attributes, e.arrived, p.body
  from events e left join payloads p on p.seq = e.seq where e.seq = any($1) and e.purged_hash = ''`

export function sizeOf(event: EventRow | undefined): number {
  return event === undefined ? 0 : event.body.length + event.request.length
}

export function metaOf(event: EventRow): WrittenRow {
  return {
    seq: event.seq,
    id: written(event.id),
    identity: event.identity === '' ? null : event.identity,
    dedupe_until: event.dedupeUntil,
    source: written(event.source),
    type: written(event.type),
    time: event.time,
    tenant: written(event.tenant),
    subject: written(event.subject),
    attributes: written(event.attributes),
    arrived: event.arrived,
    lanes: event.lanes,
    size: event.body.length,
  }
}

export async function addPayloads(db: Db, events: readonly EventRow[]): Promise<void> {
  if (events.length === 0) return
  const starts: number[] = []
  let at = 1
  for (const { request, body } of events) {
    starts.push(at)
    at += request.length + body.length
  }
  const all = Buffer.concat(events.flatMap(({ request, body }) => [request, body]))
  const columns = [
    events.map(({ seq }) => seq),
    starts,
    events.map(({ request }) => request.length),
    events.map(({ body }) => body.length),
  ]
  await db.rows(ADD_PAYLOADS, [...columns.map((column) => `{${column.join()}}`), all])
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

export function placedOf(row: Row): PlacedEvent {
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
