// `PostgresRuns` holds the finished runs of a transaction. A run is written once, when it has ended.
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { RunRow, RunTable } from '../core/tables.ts'
import { isPlainRun, parseRunNumber } from '../core/commit-context.ts'
import { buildInsert, unnestRows, defineRowType, bindRows, type RowType, type RowValues } from './columns.ts'
import {
  buildDelete,
  CachedTable,
  each,
  QueryCache,
  RowCache,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { RUN_COLUMNS, toRunRow } from '../sql/rows.ts'
import { escapeText, postgresCells } from './values.ts'

export const ADD_RUNS: RowType = defineRowType('add_runs', {
  n: 'bigint',
  parent: 'text',
  lane: 'text',
  flow: 'text',
  key: 'bytea',
  tenant: 'text',
  kind: 'text',
  reason: 'text',
  started: 'bigint',
  ended: 'bigint',
  tries: 'int',
  lapses: 'int',
  events: 'bigint[]',
  attempts: 'text',
})
const ADD_RUN = buildInsert('runs', ADD_RUNS)
/** `ADD_PLAIN_RUNS` has the columns that differ between plain runs; most runs are plain. */
export const ADD_PLAIN_RUNS: RowType = defineRowType('add_plain_runs', {
  n: 'bigint',
  lane: 'text',
  flow: 'text',
  key: 'bytea',
  started: 'bigint',
  ended: 'bigint',
  events: 'bigint[]',
})
const ADD_PLAIN_RUN = `insert into runs (n, parent, lane, flow, key, tenant, kind, reason, started, ended, tries, lapses, events)
  select n, '', lane, flow, key, '', 'done', '', started, ended, 0, 0, events from ${unnestRows(ADD_PLAIN_RUNS, 'v')}`
/**
 * A dead letter that runs again keeps its run number, and its newest record replaces the old one. Looking for the old record
 * would cost as much as writing it.
 */
const PUT_RUN = `${ADD_RUN}
  on conflict (n) do update set ${Object.keys(ADD_RUNS.columns)
    .slice(1)
    .map(
      (column) =>
        `${column} = ${column === 'started' ? 'least(runs.started, excluded.started)' : `excluded.${column}`}`,
    )
    .join(', ')}`
/** Only a purge reads these, to rewrite them. Two purges may meet in the records of an idle lane, which has no row to lock. */
const OF_LANE = `select ${RUN_COLUMNS} from runs where lane = $1 and $2 > 0 and n < $3 order by n desc limit $2 for update`
const OLDEST = `select ${RUN_COLUMNS} from runs where n > $1 order by n limit $2`

export class PostgresRuns extends CachedTable implements RunTable {
  readonly #name: string
  readonly #runs = new RowCache<RunRow>()
  readonly #firstRecords = new Set<string>()
  readonly #lists = new QueryCache(
    each(async (db, sql: string, values: readonly (string | number)[]) => {
      const runs = (await db.query(sql, values)).map((row) => toRunRow(postgresCells, row, this.#name))
      return this.#runs.addLoaded(runs.map((run) => [run.id, run]))
    }),
  )
  protected readonly caches: readonly TransactionCache[] = [this.#runs, this.#lists]

  /** `name` is the name of the store, the prefix of its run ids. */
  constructor(name: string) {
    super()
    this.#name = name
  }

  put(run: RunRow, isFirst: boolean): void {
    this.#runs.put(run.id, run)
    if (isFirst) this.#firstRecords.add(run.id)
    else this.#firstRecords.delete(run.id)
  }

  remove(id: string): void {
    this.#runs.remove(id)
  }

  findByLane(lane: LaneId, n: number, before: number = NEVER): readonly RunRow[] {
    const stored = this.#readList(OF_LANE, [lane, n, before])
    const fresh = this.#runs.changedRows.filter(
      (run) => run.lane === lane && parseRunNumber(run.id) < before && this.#runs.stored(run.id) === undefined,
    )
    return [...stored, ...fresh].slice(0, n)
  }

  findOldest(after: number, n: number): readonly RunRow[] {
    return this.#readList(OLDEST, [after, n])
  }

  #readList(sql: string, values: readonly (string | number)[]): readonly RunRow[] {
    return (this.#lists.get(sql, values) ?? []).flatMap((id) => this.#runs.get(id) ?? [])
  }

  override resetPass(): void {
    super.resetPass()
    this.#firstRecords.clear()
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#runs
    const plain: RowValues[] = []
    const firsts: RowValues[] = []
    const others: RowValues[] = []
    for (const run of kept) {
      if (!this.#firstRecords.has(run.id)) others.push(toRunColumns(run))
      else if (isPlainRun(run)) plain.push(toPlainRunColumns(run))
      else firsts.push(toRunColumns(run))
    }
    return [
      ...buildDelete('runs where n', removed.map(parseRunNumber)),
      ...bindRows(ADD_PLAIN_RUN, ADD_PLAIN_RUNS, plain),
      ...bindRows(ADD_RUN, ADD_RUNS, firsts),
      ...bindRows(PUT_RUN, ADD_RUNS, others),
    ]
  }
}

function toPlainRunColumns(run: RunRow): RowValues {
  return {
    n: parseRunNumber(run.id),
    lane: run.lane,
    flow: escapeText(run.flow),
    key: Buffer.from(run.key),
    started: run.started,
    ended: run.ended,
    events: run.events,
  }
}

function toRunColumns(run: RunRow): RowValues {
  return {
    ...toPlainRunColumns(run),
    parent: run.parent,
    tenant: escapeText(run.tenant),
    kind: run.kind,
    reason: escapeText(run.reason),
    tries: run.tries,
    lapses: run.lapses,
    attempts: run.attempts.length === 0 ? null : JSON.stringify(run.attempts),
  }
}
