// Publishing inside somebody else's transaction: a row that commits or vanishes with it, and is routed after that (L17).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event-input.ts'
import { written } from '../store/postgres/values.ts'
import { newEvent, type UnroutedEvent } from './new-event.ts'
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
/** A statement has room for 65,535 values, and is one message. */
const EVENTS_AT_ONCE = Math.floor(65_535 / COLUMNS.length)
const BYTES_AT_ONCE = 67_108_864

/** In their order; all in one statement, unless they are too many. */
export async function putInOutbox(
  tx: Transaction,
  inputs: readonly EventInput[],
  { schema, to, now, dedupeFor }: OutboxCall,
): Promise<readonly Published[]> {
  if (typeof tx?.query !== 'function') {
    throw new SluiceError('CONFIG_INVALID', 'publish: tx must be a client of pg; nothing was stored.')
  }
  const events = inputs.map((input) => ({ ...newEvent(input, { now, dedupeFor }), dedupeId: input.dedupeId }))
  if (events.some(({ attributes, body }) => Buffer.byteLength(attributes) + body.length > BYTES_MAX)) {
    throw new SluiceError('EVENT_INVALID', 'body and attributes must be at most 16 MB with tx; nothing was stored.')
  }
  const flows = to === undefined ? null : [...to]
  const keptFor = Number.isFinite(dedupeFor) ? dedupeFor : Number.MAX_SAFE_INTEGER
  const table = `"${schema.replaceAll('"', '""')}".outbox`
  for (const some of inStatements(events)) {
    const values = some.map((event) => [
      written(event.id),
      written(event.source),
      written(event.type),
      event.time,
      written(event.tenant),
      written(event.subject),
      event.attributes,
      written(event.dedupeId ?? event.id),
      keptFor,
      flows,
      Buffer.from(event.body),
    ])
    const places = values.map((row, at) => `(${row.map((_, column) => `$${at * row.length + column + 1}`).join(', ')})`)
    await tx.query(`insert into ${table} (${COLUMNS.join(', ')}) values ${places.join(', ')}`, values.flat())
  }
  return events.map(({ id }) => ({ id, kind: 'in-transaction', of: undefined }))
}

function inStatements<E extends UnroutedEvent>(events: readonly E[]): readonly (readonly E[])[] {
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
