// What was published inside somebody else's transaction (L17): rows that nobody waits for and that lock nothing. Once
// they are committed whoever looks first takes them in, one process at a time, so that each transaction keeps its order.
import { identity } from '../../model/identity.ts'
import type { Mark, NewEvent } from '../contract/index.ts'
import type { OutboxTable } from '../rules/tables.ts'
import { BYTES_AT_ONCE } from './event-rows.ts'
import type { Locks } from './locks.ts'
import { deleteBy, Questions, type Db, type Part, type Statement } from './part.ts'
import { bytes, number, text, texts, type Row } from './values.ts'

interface Waiting {
  readonly n: number
  readonly event: NewEvent
}

const FIRST = `select n, tx::text, id, source, type, time, tenant, subject, attributes, dedupe_id, dedupe_for, to_flows, body
  from (select *, sum(size) over (order by n) - size as before from
    (select *, octet_length(attributes) + octet_length(body) as size from outbox where refused is null order by n limit $1) o) o
  where before < ${BYTES_AT_ONCE} order by n`
const REFUSE = `update outbox o set refused = r.because from unnest($1::bigint[], $2::text[]) as r (n, because) where o.n = r.n`
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
      ...deleteBy('outbox where n', numbersOf(gone)),
      ...(kept.length > 0 ? [[REFUSE, [numbersOf(kept), reasons]] as const] : []),
    ]
  }
}

function numbersOf(rows: readonly Waiting[]): readonly number[] {
  return rows.map(({ n }) => n)
}

function waiting(row: Row): Waiting {
  const [source, tenant] = [text(row[3]), text(row[6])]
  const mark = (flow: string): Mark => ({ flow, reason: 'outbox', error: `transaction ${text(row[1])}` })
  return {
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
