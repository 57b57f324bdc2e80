// `writeToOutbox` publishes inside the caller's transaction: the row commits or rolls back with it, and is routed
// afterwards (L17).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { EventInput, PublishResult } from '../model/event.ts'
import { escapeText } from '../store/postgres/values.ts'
import { createEvent, type RoutableEvent } from '../model/new-event.ts'

/** `Transaction` is a client of `pg`. A pool does not work: each of its queries is its own transaction. */
export interface Transaction {
  query(text: string, values: unknown[]): Promise<unknown>
}

export interface OutboxOptions {
  readonly schema: string
  readonly to: ReadonlySet<string> | undefined
  readonly now: Millis
  readonly dedupeFor: Millis
}

/** The bound of the table: exceeding it there would abort the transaction. */
const BYTES_MAX = 16_777_216

const COLUMNS = [
  'id',
  'source',
  'type',
  'time',
  'tenant',
  'subject',
  'attributes',
  'dedupe_id',
  'dedupe_for',
  'to_flows',
  'body',
] as const
/** The bounds of one statement: 65,535 values, in one message. */
const EVENTS_AT_ONCE = Math.floor(65_535 / COLUMNS.length)
const BYTES_AT_ONCE = 67_108_864

/** `writeToOutbox` keeps the order of the events, and uses one statement unless they exceed its bounds. */
export async function writeToOutbox(
  tx: Transaction,
  inputs: readonly EventInput[],
  { schema, to, now, dedupeFor }: OutboxOptions,
): Promise<readonly PublishResult[]> {
  if (typeof tx?.query !== 'function') {
    throw new SluiceError('CONFIG_INVALID', 'publish: tx must be a client of pg; nothing was stored.')
  }
  const events = inputs.map((input) => ({ ...createEvent(input, { now, dedupeFor }), dedupeId: input.dedupeId }))
  if (events.some(({ attributes, body }) => Buffer.byteLength(attributes) + body.length > BYTES_MAX)) {
    throw new SluiceError('EVENT_INVALID', 'body and attributes must be at most 16 MB with tx; nothing was stored.')
  }
  const flows = to === undefined ? null : [...to]
  const keptFor = Number.isFinite(dedupeFor) ? dedupeFor : Number.MAX_SAFE_INTEGER
  const table = `"${schema.replaceAll('"', '""')}".outbox`
  for (const some of splitStatements(events)) {
    const values = some.map((event) => [
      escapeText(event.id),
      escapeText(event.source),
      escapeText(event.type),
      event.time,
      escapeText(event.tenant),
      escapeText(event.subject),
      event.attributes,
      escapeText(event.dedupeId ?? event.id),
      keptFor,
      flows,
      Buffer.from(event.body),
    ])
    const places = values.map((row, at) => `(${row.map((_, column) => `$${at * row.length + column + 1}`).join(', ')})`)
    await tx.query(`insert into ${table} (${COLUMNS.join(', ')}) values ${places.join(', ')}`, values.flat())
  }
  return events.map(({ id }) => ({ id, kind: 'in-transaction', of: undefined }))
}

function splitStatements<E extends RoutableEvent>(events: readonly E[]): readonly (readonly E[])[] {
  const statements: E[][] = []
  let room = 0
  for (const event of events) {
    const last = statements.at(-1)
    room -= event.body.length
    if (last !== undefined && last.length < EVENTS_AT_ONCE && room >= 0) last.push(event)
    else {
      statements.push([event])
      room = BYTES_AT_ONCE - event.body.length
    }
  }
  return statements
}
