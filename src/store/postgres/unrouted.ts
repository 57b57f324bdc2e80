// `PostgresUnrouted` holds the unrouted events of a transaction: stored events that still lack some of their placements. Their
// table is named `marks`.
import type { Millis } from '../../clock.ts'
import type { UnroutedRow, UnroutedTable } from '../core/tables.ts'
import { MAX_BYTES_PER_READ } from './event-rows.ts'
import {
  buildDelete,
  RowCache,
  QueryCache,
  buildUpsert,
  bindJson,
  type Db,
  type TransactionTable,
  type Statement,
} from './row-cache.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { toUnroutedRow, UNROUTED_COLUMNS } from '../sql/rows.ts'
import { escapeText, postgresCells, type Row } from './values.ts'

const SELECT_UNROUTED = `select ${UNROUTED_COLUMNS} from marks where`
const PUT_UNROUTED = buildUpsert('marks', UNROUTED_COLUMNS, 'id')
/**
 * Events of one outbox transaction are placed in their order: none is due while another of them is being placed. The subquery
 * has no outer references, so the server runs it once, not for each row.
 */
const BEING_PLACED = `select error, flow from marks where reason = 'outbox' and error like 'transaction %' and due > $1`
const FIRST_DUE = `select ${UNROUTED_COLUMNS} from marks m where due <= $1 and reason = any($2) and (flow = '' or flow = any($3))
  and (reason <> 'outbox' or (error, flow) not in (${BEING_PLACED}))
  order by due, id limit $4 for update skip locked`
const DUE = `select ${UNROUTED_COLUMNS} from
  (select m.*, sum(size) over (order by due, id) - size as before from (${FIRST_DUE}) m left join lateral
    (select size + octet_length(request) as size from events where seq = m.event) e on true) m
  where before is null or before < ${MAX_BYTES_PER_READ} order by due, id`

export class PostgresUnrouted implements UnroutedTable, TransactionTable {
  readonly #rows = new RowCache<UnroutedRow>()
  readonly #events = new Set<number>()
  readonly #missingEvents = new Set<number>()
  readonly #due = new QueryCache<
    [now: Millis, reasons: readonly string[], flows: readonly string[], n: number],
    readonly number[]
  >()

  get(id: number): UnroutedRow | undefined {
    return this.#rows.get(String(id))
  }

  put(row: UnroutedRow): void {
    this.#rows.put(String(row.id), row)
  }

  remove(id: number): void {
    this.#rows.remove(String(id))
  }

  findDue(...query: Parameters<UnroutedTable['findDue']>): readonly UnroutedRow[] {
    // While the time of the transaction is unknown, nothing is due.
    return (query[0] === UNKNOWN_NOW ? [] : (this.#due.get(...query) ?? [])).flatMap((id) => this.get(id) ?? [])
  }

  findByEvent(event: number): readonly UnroutedRow[] {
    if (!this.#events.has(event)) this.#missingEvents.add(event)
    return [...this.#rows.values()].filter((row) => row.event === event)
  }

  resetPass(): void {
    this.#rows.resetPass()
    this.#missingEvents.clear()
    this.#due.resetPass()
  }

  get hasMisses(): boolean {
    return this.#rows.hasMisses || this.#missingEvents.size > 0 || this.#due.hasMisses
  }

  async load(db: Db): Promise<void> {
    const ids = this.#rows.takeMisses()
    const events = [...this.#missingEvents]
    for (const id of ids) this.#rows.load(id, undefined)
    for (const event of events) this.#events.add(event)
    await Promise.all([
      ids.length > 0
        ? db
            .query(`${SELECT_UNROUTED} id = any($1) order by id for update`, [ids.map(Number)])
            .then((rows) => this.#loadRows(rows))
        : undefined,
      events.length > 0
        ? db
            .query(`${SELECT_UNROUTED} event = any($1) order by id for update`, [events])
            .then((rows) => this.#loadRows(rows))
        : undefined,
      this.#due.load(async (now, reasons, flows, n) =>
        this.#loadRows(await db.query(DUE, [now, reasons, flows.map(escapeText), n])),
      ),
    ])
  }

  #loadRows(rows: readonly Row[]): readonly number[] {
    return rows.map((row) => {
      const unrouted = toUnroutedRow(postgresCells, row)
      this.#rows.load(String(unrouted.id), unrouted)
      return unrouted.id
    })
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#rows
    const rows = kept.map((row) => ({ ...row, flow: escapeText(row.flow), error: escapeText(row.error) }))
    return [...buildDelete('marks where id', removed.map(Number)), ...bindJson(PUT_UNROUTED, rows)]
  }
}
