// Finished runs in a transaction: written once, when they are over.
import type { LaneId } from '../../model/identity.ts'
import type { Attempt } from '../../model/lane.ts'
import type { RunRow, RunTable } from '../rules/tables.ts'
import { isPlain, runNumber } from '../rules/work.ts'
import { insertInto, rowsOf, rowType, withRows, type RowType, type WrittenRow } from './columns.ts'
import { deleteBy, Keyed, Questions, type Db, type Part, type Statement } from './part.ts'
import { bytes, number, numbers, text, written, type Row } from './values.ts'

export const ADD_RUNS: RowType = rowType('add_runs', {
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
const RUN = Object.keys(ADD_RUNS.columns)
export const RUN_COLUMNS: string = RUN.join(', ')
const ADD_RUN = insertInto('runs', ADD_RUNS)
/** Of most runs there is nothing else to say. */
export const ADD_PLAIN_RUNS: RowType = rowType('add_plain_runs', {
  n: 'bigint',
  lane: 'text',
  flow: 'text',
  key: 'bytea',
  started: 'bigint',
  ended: 'bigint',
  events: 'bigint[]',
})
const ADD_PLAIN_RUN = `insert into runs (n, parent, lane, flow, key, tenant, kind, reason, started, ended, tries, lapses, events)
  select n, '', lane, flow, key, '', 'done', '', started, ended, 0, 0, events from ${rowsOf(ADD_PLAIN_RUNS, 'v')}`
/** A dead letter that runs again has the same number: its newest record stands. To look for the old one costs as much as to write. */
const PUT_RUN = `${ADD_RUN}
  on conflict (n) do update set ${RUN.slice(1)
    .map(
      (column) =>
        `${column} = ${column === 'started' ? 'least(runs.started, excluded.started)' : `excluded.${column}`}`,
    )
    .join(', ')}`
const OF_LANE = `select ${RUN_COLUMNS} from runs where lane = $1 and $2 > 0 order by n desc limit $2`
const OLDEST = `select ${RUN_COLUMNS} from runs where n > $1 order by n limit $2`

export class PostgresRuns implements RunTable, Part {
  readonly #name: string
  readonly #runs = new Keyed<RunRow>()
  readonly #firsts = new Set<string>()
  readonly #lists = new Questions<[sql: string, values: readonly (string | number)[]], readonly string[]>()

  /** `name`: of the store, with which its runs' ids begin. */
  constructor(name: string) {
    this.#name = name
  }

  put(run: RunRow, isFirst: boolean): void {
    this.#runs.put(run.id, run)
    if (isFirst) this.#firsts.add(run.id)
    else this.#firsts.delete(run.id)
  }

  remove(id: string): void {
    this.#runs.remove(id)
  }

  ofLane(lane: LaneId, n: number): readonly RunRow[] {
    const stored = this.#list(OF_LANE, [lane, n])
    const fresh = this.#runs.kept.filter((run) => run.lane === lane && this.#runs.stored(run.id) === undefined)
    return [...stored, ...fresh].slice(0, n)
  }

  oldest(after: number, n: number): readonly RunRow[] {
    return this.#list(OLDEST, [after, n])
  }

  #list(sql: string, values: readonly (string | number)[]): readonly RunRow[] {
    return (this.#lists.ask(sql, values) ?? []).flatMap((id) => this.#runs.get(id) ?? [])
  }

  again(): void {
    this.#runs.again()
    this.#firsts.clear()
    this.#lists.again()
  }

  get isLacking(): boolean {
    return this.#lists.isLacking
  }

  async load(db: Db): Promise<void> {
    await this.#lists.load(async (sql, values) =>
      (await db.rows(sql, values)).map((row) => {
        const run = runOf(row, this.#name)
        this.#runs.load(run.id, run)
        return run.id
      }),
    )
  }

  writes(): readonly Statement[] {
    const { kept, removed } = this.#runs
    const plain: WrittenRow[] = []
    const firsts: WrittenRow[] = []
    const others: WrittenRow[] = []
    for (const run of kept) {
      if (!this.#firsts.has(run.id)) others.push(runRow(run))
      else if (isPlain(run)) plain.push(plainRunRow(run))
      else firsts.push(runRow(run))
    }
    return [
      ...deleteBy('runs where n', removed.map(runNumber)),
      ...withRows(ADD_PLAIN_RUN, ADD_PLAIN_RUNS, plain),
      ...withRows(ADD_RUN, ADD_RUNS, firsts),
      ...withRows(PUT_RUN, ADD_RUNS, others),
    ]
  }
}

function plainRunRow(run: RunRow): WrittenRow {
  return {
    n: runNumber(run.id),
    lane: run.lane,
    flow: written(run.flow),
    key: Buffer.from(run.key),
    started: run.started,
    ended: run.ended,
    events: run.events,
  }
}

function runRow(run: RunRow): WrittenRow {
  return {
    ...plainRunRow(run),
    parent: run.parent,
    tenant: written(run.tenant),
    kind: run.kind,
    reason: written(run.reason),
    tries: run.tries,
    lapses: run.lapses,
    attempts: run.attempts.length === 0 ? null : JSON.stringify(run.attempts),
  }
}

export function runOf(row: Row, store: string): RunRow {
  return {
    id: `${store}-${number(row[0]).toString(36)}`,
    parent: text(row[1]),
    lane: text(row[2]),
    flow: text(row[3]),
    key: Buffer.from(bytes(row[4])).toString(),
    tenant: text(row[5]),
    kind: text(row[6]) as RunRow['kind'],
    reason: text(row[7]),
    started: number(row[8]),
    ended: number(row[9]),
    tries: number(row[10]),
    lapses: number(row[11]),
    events: numbers(row[12]),
    attempts: typeof row[13] === 'string' ? (JSON.parse(row[13]) as readonly Attempt[]) : [],
  }
}
