// `PostgresOutbox` takes in events that other programs published inside their own transactions (L17). Publishing inserts a row
// and takes no lock. After the commit, the first process that looks takes the rows in; one process at a time, so that each
// transaction keeps its order.
import { computeIdentity } from '../../model/identity.ts'
import type { UnroutedFlow, EventToStore } from '../contract/index.ts'
import type { OutboxTable } from '../core/tables.ts'
import { MAX_BYTES_PER_READ } from './event-rows.ts'
import type { AdvisoryLocks } from './locks.ts'
import { CachedTable, each, QueryCache, type Statement, type TransactionCache } from './row-cache.ts'
import { bytes, number, text, texts, type Row } from './values.ts'

interface OutboxRow {
  readonly tx: string
  readonly n: number
  readonly event: EventToStore
}

const COLUMNS =
  'n, tx::text, id, source, type, time, tenant, subject, attributes, dedupe_id, dedupe_for, to_flows, body'
/**
 * The maximum number of unplaced events per transaction. More are not taken in: one process at a time places them, in their
 * order.
 */
const MAX_UNPLACED_PER_TRANSACTION = 1_000
/**
 * Transactions take turns, one event each, so a small transaction does not wait for the end of a large one. The query finds
 * each transaction with one index lookup. It reads only the length of bodies until it knows which rows to take.
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
    where ${MAX_UNPLACED_PER_TRANSACTION} > (select count(*) from
      (select from marks m where reason = 'outbox' and error = 'transaction ' || t.tx limit ${MAX_UNPLACED_PER_TRANSACTION}) m)
  ), taken as (
    select tx, n, sum(size) over (order by turn, tx) - size as before from first order by turn, tx limit $1
  )
  select ${COLUMNS} from taken join outbox using (tx, n) where before < ${MAX_BYTES_PER_READ} order by n`
const REFUSE = `update outbox o set refused = r.because from unnest($1::xid8[], $2::bigint[], $3::text[]) as r (tx, n, because)
  where o.tx = r.tx and o.n = r.n`
const DELETE = `delete from outbox o using unnest($1::xid8[], $2::bigint[]) as t (tx, n) where o.tx = t.tx and o.n = t.n`
const NO_BYTES = new Uint8Array()

export class PostgresOutbox extends CachedTable implements OutboxTable {
  readonly #locks: AdvisoryLocks
  readonly #first = new QueryCache(each(async (db, n: number) => (await db.query(FIRST, [n])).map(toOutboxRow)))
  protected readonly caches: readonly TransactionCache[] = [this.#first]
  #taken: readonly OutboxRow[] = []
  readonly #refused = new Map<EventToStore, string>()

  constructor(locks: AdvisoryLocks) {
    super()
    this.#locks = locks
  }

  take(n: number): readonly EventToStore[] {
    this.#locks.require('outbox')
    this.#taken = this.#first.get(n) ?? []
    return this.#taken.map(({ event }) => event)
  }

  refuse(event: EventToStore, because: string): void {
    this.#refused.set(event, because)
  }

  override resetPass(): void {
    super.resetPass()
    this.#taken = []
    this.#refused.clear()
  }

  buildWrites(): readonly Statement[] {
    const refused = this.#taken.filter(({ event }) => this.#refused.has(event))
    const taken = this.#taken.filter(({ event }) => !this.#refused.has(event))
    const reasons = refused.map(({ event }) => this.#refused.get(event))
    return [
      ...(taken.length > 0 ? [[DELETE, getKeyColumns(taken)] as const] : []),
      ...(refused.length > 0 ? [[REFUSE, [...getKeyColumns(refused), reasons]] as const] : []),
    ]
  }
}

function getKeyColumns(rows: readonly OutboxRow[]): readonly (readonly (string | number)[])[] {
  return [rows.map(({ tx }) => tx), rows.map(({ n }) => n)]
}

function toOutboxRow(row: Row): OutboxRow {
  const [source, tenant] = [text(row[3]), text(row[6])]
  const tx = text(row[1])
  const toUnrouted = (flow: string): UnroutedFlow => ({ flow, reason: 'outbox', error: `transaction ${tx}` })
  return {
    tx,
    n: number(row[0]),
    event: {
      id: text(row[2]),
      identity: computeIdentity(source, tenant, text(row[9])),
      dedupeFor: number(row[10]),
      source,
      type: text(row[4]),
      time: number(row[5]),
      tenant,
      subject: text(row[7]),
      attributes: text(row[8]),
      body: bytes(row[12]),
      request: NO_BYTES,
      placements: [],
      unrouted: row[11] === null ? [toUnrouted('')] : texts(row[11]).map(toUnrouted),
    },
  }
}
