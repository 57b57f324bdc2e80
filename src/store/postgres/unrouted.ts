// `PostgresUnrouted` holds the unrouted events of a transaction: stored events that still lack some of their placements. Their
// table is named `marks`.
import type { UnroutedRow, UnroutedTable } from '../core/tables.ts'
import { MAX_BYTES_PER_READ } from './event-rows.ts'
import {
  bindJson,
  buildDelete,
  buildUpsert,
  CachedTable,
  each,
  QueryCache,
  RowCache,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { toUnroutedRow, UNROUTED_COLUMNS } from '../sql/rows.ts'
import { escapeText, postgresCells, type Row } from './values.ts'

const BY_ID = `select ${UNROUTED_COLUMNS} from marks where id = any($1) order by id for update`
const BY_EVENT = `select ${UNROUTED_COLUMNS} from marks where event = any($1) order by id for update`
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

export class PostgresUnrouted extends CachedTable implements UnroutedTable {
  readonly #rows = new RowCache<UnroutedRow>(async (db, ids) => toEntries(await db.query(BY_ID, [ids.map(Number)])))
  /** The events whose unrouted flows are all loaded. */
  readonly #ofEvents = new QueryCache<[event: number], true>(async (db, events) => {
    this.#rows.addLoaded(toEntries(await db.query(BY_EVENT, [events.flat()])))
    return events.map(() => true)
  })
  readonly #due = new QueryCache(
    each(async (db, ...[now, reasons, flows, n]: Parameters<UnroutedTable['findDue']>) =>
      this.#rows.addLoaded(toEntries(await db.query(DUE, [now, reasons, flows.map(escapeText), n]))),
    ),
  )
  protected readonly caches: readonly TransactionCache[] = [this.#rows, this.#ofEvents, this.#due]

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
    return (query[0] === UNKNOWN_NOW ? [] : (this.#due.get(...query) ?? [])).flatMap((id) => this.#rows.get(id) ?? [])
  }

  findByEvent(event: number): readonly UnroutedRow[] {
    this.#ofEvents.get(event)
    return [...this.#rows.values()].filter((row) => row.event === event)
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#rows
    const rows = kept.map((row) => ({ ...row, flow: escapeText(row.flow), error: escapeText(row.error) }))
    return [...buildDelete('marks where id', removed.map(Number)), ...bindJson(PUT_UNROUTED, rows)]
  }
}

function toEntries(rows: readonly Row[]): readonly (readonly [id: string, entry: UnroutedRow])[] {
  return rows.map((row) => toUnroutedRow(postgresCells, row)).map((entry) => [String(entry.id), entry])
}
