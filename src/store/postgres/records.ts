// `PostgresRecords` searches records and reads stats for a transaction.
import type { Millis } from '../../clock.ts'
import type { CountCall, FindCall, RecordKind, RecordTypes } from '../contract/index.ts'
import type { RecordCount, RecordPage, RecordQueries, TableStats } from '../core/tables.ts'
import { RecordSearch, type SqlDialect, type SqlQuery, type SqlSearch } from '../sql/record-search.ts'
import { LANE_COLUMNS, toLane } from './lane-rows.ts'
import { QueryCache, type Db, type TransactionTable, type Statement } from './row-cache.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { queryStats } from './stats.ts'
import { escapeText, postgresCells } from './values.ts'

interface FoundRecord {
  readonly found: unknown
}

const createDialect = (store: string): SqlDialect => ({
  cells: postgresCells,
  store,
  lanes: { columns: LANE_COLUMNS.join(', '), read: (row) => toLane(row) },
  sizeOfEvent: 'size',
  unroutedOfEvent: `(select json_agg(json_build_array(flow, reason, error) order by marks.id)::text
    from marks where marks.event = events.seq)`,
  where: {
    withoutSource: 'not starts_with(source, ?)',
    laneOfEvent: '? = any(lanes)',
    flowOfUnrouted: 'flow = ?',
  },
  selectEventIds: (seqs) => ({ sql: 'select seq, id from events where seq = any(?)', values: [seqs] }),
})

const NO_STATS: TableStats = { flows: [], deadLetters: 0, unrouted: [], limits: [], bytes: 0 }

export class PostgresRecords implements RecordQueries, TransactionTable {
  readonly #search: RecordSearch
  readonly #found = new QueryCache<[call: FindCall<RecordKind>], FoundRecord>()
  readonly #counted = new QueryCache<[call: CountCall], RecordCount>()
  readonly #got = new QueryCache<[kind: RecordKind, id: string], FoundRecord>()
  readonly #stats = new QueryCache<[now: Millis], TableStats>()

  constructor(store: string) {
    this.#search = new RecordSearch(createDialect(store))
  }

  find<K extends RecordKind>(call: FindCall<K>): RecordPage<K> {
    return (this.#found.get(call)?.found ?? { items: [], next: undefined }) as RecordPage<K>
  }

  count(call: CountCall): RecordCount {
    return this.#counted.get(call) ?? { count: 0, next: undefined }
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    return this.#got.get(kind, id)?.found as RecordTypes[K] | undefined
  }

  stats(now: Millis): TableStats {
    return (now === UNKNOWN_NOW ? undefined : this.#stats.get(now)) ?? NO_STATS
  }

  resetPass(): void {
    for (const queries of this.#queries) queries.resetPass()
  }

  get #queries(): readonly Pick<QueryCache<[], unknown>, 'resetPass' | 'hasMisses'>[] {
    return [this.#found, this.#counted, this.#got, this.#stats]
  }

  get hasMisses(): boolean {
    return this.#queries.some((queries) => queries.hasMisses)
  }

  async load(db: Db): Promise<void> {
    await Promise.all([
      this.#found.load(async (call) => ({ found: await runSearch(db, this.#search.find(call)) })),
      this.#counted.load((call) => runSearch(db, this.#search.count(call))),
      this.#got.load(async (kind, id) => ({ found: await runSearch(db, this.#search.get(kind, id)) })),
      this.#stats.load((now) => queryStats(db, now)),
    ])
  }

  buildWrites(): readonly Statement[] {
    return []
  }
}

async function runSearch<T>(db: Db, search: SqlSearch<T>): Promise<T> {
  let step = search.next([])
  while (step.done !== true) {
    const { values } = step.value
    const escaped = values.map((value) => (typeof value === 'string' ? escapeText(value) : value))
    step = search.next(await db.query(toNumbered(step.value), escaped))
  }
  return step.value
}

/** `toNumbered` numbers the parameters. The limit becomes part of the text, because the server plans by it. */
function toNumbered({ sql, values, limit }: SqlQuery): string {
  let n = 0
  return sql.replaceAll('?', () => (++n > values.length ? String(limit) : `$${n}`))
}
