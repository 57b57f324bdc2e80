// Publishing inside somebody else's transaction: a row that commits or vanishes with it, and is routed after that (L17).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event-input.ts'
import { newEvent } from './new-event.ts'
import type { Published } from './publisher.ts'

/** What `pg` calls a client; a pool is none, for each of its queries is a transaction by itself. */
export interface Transaction {
  query(text: string, values: unknown[]): Promise<unknown>
}

export interface OutboxCall {
  readonly schema: string
  readonly to: ReadonlySet<string> | undefined
  readonly now: Millis
  readonly dedupeFor: Millis
}

/** As the table has it: what it refuses would take the transaction along. */
const BYTES_MAX = 16_777_216

/** All in one statement, in their order. */
export async function putInOutbox(
  tx: Transaction,
  inputs: readonly EventInput[],
  { schema, to, now, dedupeFor }: OutboxCall,
): Promise<readonly Published[]> {
  if (typeof tx?.query !== 'function') {
    throw new SluiceError('CONFIG_INVALID', 'publish: tx must be a client of pg; nothing was stored.')
  }
  const events = inputs.map((input) => ({ ...newEvent(input, { now, dedupeFor }), dedupeId: input.dedupeId }))
  if (events.length === 0) return []
  if (events.some(({ attributes, body }) => Buffer.byteLength(attributes) + body.length > BYTES_MAX)) {
    throw new SluiceError('EVENT_INVALID', 'body and attributes must be at most 16 MB with tx; nothing was stored.')
  }
  const columns = [
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
  ]
  const values = events.map((event) => [
    event.id,
    event.source,
    event.type,
    event.time,
    event.tenant,
    event.subject,
    event.attributes,
    event.dedupeId ?? event.id,
    Number.isFinite(dedupeFor) ? dedupeFor : Number.MAX_SAFE_INTEGER,
    to === undefined ? null : [...to],
    Buffer.from(event.body),
  ])
  const places = values.map((row, at) => `(${row.map((_, column) => `$${at * row.length + column + 1}`).join(', ')})`)
  const table = `"${schema.replaceAll('"', '""')}".outbox`
  await tx.query(`insert into ${table} (${columns.join(', ')}) values ${places.join(', ')}`, values.flat())
  return events.map(({ id }) => ({ id, kind: 'in-transaction', of: undefined }))
}
