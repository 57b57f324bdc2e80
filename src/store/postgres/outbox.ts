// What was published inside somebody else's transaction (L17): rows that nobody waits for and that lock nothing. Once
// they are committed whoever looks first takes them in, one process at a time, so that each transaction keeps its order.
import { identity } from '../../model/identity.ts'
import type { Mark, NewEvent } from '../contract/index.ts'
import type { OutboxTable } from '../rules/tables.ts'
import { BYTES_AT_ONCE } from './event-rows.ts'
import type { Locks } from './locks.ts'
import { Questions, type Db, type Part, type Statement } from './part.ts'
import { bytes, number, text, texts, type Row } from './values.ts'

interface Waiting {
  readonly tx: string
  readonly n: number
  readonly event: NewEvent
}

const COLUMNS =
  'n, tx::text, id, source, type, time, tenant, subject, attributes, dedupe_id, dedupe_for, to_flows, body'
/** A transaction that has so many events on their way has no more taken in: they are placed in its order, by one process at a time. */
const ON_THEIR_WAY = 1_000
/**
 * Transactions take turns, an event each: a small one does not wait for the end of a large one. They are found by one look at
 * the index for each, and of the bodies only the length is read before it is known which are taken.
 */
const FIRST = `with recursive transactions (tx, nth) as (
    (select tx, 1 from outbox where refused is null order by tx limit 1)
    union all
    select (select o.tx from outbox o where o.tx > t.tx and refused is null order by o.tx limit 1), nth + 1
    from transactions t where tx is not null and nth < $1
  ), first as (
    select o.*, row_number() over (partition by o.tx order by o.n) as turn from transactions t cross join lateral (
      select tx, n, octet_length(attributes) + octet_length(body) as size from outbox where tx = t.tx and refused is null order by n limit $1
    ) o
    where ${ON_THEIR_WAY} > (select count(*) from
      (select from marks m where reason = 'outbox' and error = 'transaction ' || t.tx limit ${ON_THEIR_WAY}) m)
  ), taken as (
    select tx, n, sum(size) over (order by turn, tx) - size as before from first order by turn, tx limit $1
  )
  select ${COLUMNS} from taken join outbox using (tx, n) where before < ${BYTES_AT_ONCE} order by n`
const REFUSE = `update outbox o set refused = r.because from unnest($1::xid8[], $2::bigint[], $3::text[]) as r (tx, n, because)
  where o.tx = r.tx and o.n = r.n`
const DELETE = `delete from outbox o using unnest($1::xid8[], $2::bigint[]) as t (tx, n) where o.tx = t.tx and o.n = t.n`
const NO_BYTES = new Uint8Array()

export class PostgresOutbox implements OutboxTable, Part {
  readonly #locks: Locks
  readonly #first = new Questions<[n: number], readonly Waiting[]>()
  #taken: readonly Waiting[] = []
  readonly #refused = new Map<NewEvent, string>()

  constructor(locks: Locks) {
    this.#locks = locks
  }

  take(n: number): readonly NewEvent[] {
    this.#locks.hold('outbox')
    this.#taken = this.#first.ask(n) ?? []
    return this.#taken.map(({ event }) => event)
  }

  keep(event: NewEvent, because: string): void {
    this.#refused.set(event, because)
  }

  again(): void {
    this.#first.again()
    this.#taken = []
    this.#refused.clear()
  }

  get isLacking(): boolean {
    return this.#first.isLacking
  }

  async load(db: Db): Promise<void> {
    await this.#first.load(async (n) => (await db.rows(FIRST, [n])).map(waiting))
  }

  writes(): readonly Statement[] {
    const kept = this.#taken.filter(({ event }) => this.#refused.has(event))
    const gone = this.#taken.filter(({ event }) => !this.#refused.has(event))
    const reasons = kept.map(({ event }) => this.#refused.get(event))
    return [
      ...(gone.length > 0 ? [[DELETE, keysOf(gone)] as const] : []),
      ...(kept.length > 0 ? [[REFUSE, [...keysOf(kept), reasons]] as const] : []),
    ]
  }
}

function keysOf(rows: readonly Waiting[]): readonly (readonly (string | number)[])[] {
  return [rows.map(({ tx }) => tx), rows.map(({ n }) => n)]
}

function waiting(row: Row): Waiting {
  const [source, tenant] = [text(row[3]), text(row[6])]
  const tx = text(row[1])
  const mark = (flow: string): Mark => ({ flow, reason: 'outbox', error: `transaction ${tx}` })
  return {
    tx,
    n: number(row[0]),
    event: {
      id: text(row[2]),
      identity: identity(source, tenant, text(row[9])),
      dedupeFor: number(row[10]),
      source,
      type: text(row[4]),
      time: number(row[5]),
      tenant,
      subject: text(row[7]),
      attributes: text(row[8]),
      body: bytes(row[12]),
      request: NO_BYTES,
      places: [],
      marks: row[11] === null ? [mark('')] : texts(row[11]).map(mark),
    },
  }
}
