// `PostgresRecords` searches records and reads stats for a transaction.
import type { Millis } from '../../clock.ts'
import type { CountCall, FindCall, RecordKind, RecordTypes } from '../contract/index.ts'
import type { RecordCount, RecordPage, RecordQueries, TableStats } from '../core/tables.ts'
import { RecordSearch, type SqlDialect, type SqlQuery, type SqlSearch } from '../sql/record-search.ts'
import { LANE_COLUMNS, toLane } from './lane-rows.ts'
import { CachedTable, each, QueryCache, type Db, type Statement, type TransactionCache } from './row-cache.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { queryStats } from './stats.ts'
import { escapeText, number, postgresCells } from './values.ts'

/** A subject may be longer than an index entry, so the index has its hash. */
export const SUBJECT_OF_EVENT = `subject <> '' and hashtextextended(subject, 0) = hashtextextended(?, 0) and subject = ?`
/** The lanes that an event of the subject entered have few of all dead letters. */
const SUBJECT_OF_DEAD_LETTER = `lane in (select unnest(lanes) from events where ${SUBJECT_OF_EVENT})
  and exists (select 1 from unnest(places) with ordinality place (event, n) join events on seq = place.event
    where place.n % 3 = 2 and ${SUBJECT_OF_EVENT})`

/** A lane's row has one of its live placements. */
const LIVE_PLACEMENTS = `select pos, event from (
  (select first_pos as pos, first_event as event from lanes where row = ? and first_pos is not null)
  union all (select pos, event from places where lane = ? and rank = 0 order by pos)) placed order by pos limit ?`
const REPLAYS = 'select pos, event from places where lane = ? and rank = 1 order by pos limit ?'

const createDialect = (store: string): SqlDialect => ({
  cells: postgresCells,
  store,
  lanes: { columns: LANE_COLUMNS.join(', '), read: (row) => toLane(row, store) },
  sizeOfEvent: 'size',
  unroutedOfEvent: `(select json_agg(json_build_array(flow, reason, error) order by marks.id)::text
    from marks where marks.event = events.seq)`,
  where: {
    withoutSource: 'not starts_with(source, ?)',
    laneOfEvent: '? = any(lanes)',
    amongEvents: 'seq = any(?)',
    flowOfUnrouted: 'flow = ?',
    subjectOfEvent: SUBJECT_OF_EVENT,
    subjectOfDeadLetter: SUBJECT_OF_DEAD_LETTER,
    subjectOfUnrouted: `event in (select seq from events where ${SUBJECT_OF_EVENT})`,
  },
  bindSeqs: (seqs) => seqs,
  *findPlacements({ row }, rank, n) {
    const rows = yield {
      sql: rank === 0 ? LIVE_PLACEMENTS : REPLAYS,
      values: [row, ...(rank === 0 ? [row] : [])],
      limit: n,
    }
    return rows.map(([pos, event]) => ({ pos: number(pos), event: number(event) }))
  },
  selectEventIds: (seqs) => ({ sql: 'select seq, id from events where seq = any(?)', values: [seqs] }),
})

const NO_STATS: TableStats = { flows: [], deadLetters: 0, unrouted: [], limits: [], bytes: 0 }

export class PostgresRecords extends CachedTable implements RecordQueries {
  readonly #search: RecordSearch
  readonly #pages = new QueryCache(
    each(async (db, call: FindCall<RecordKind>) => ({ found: await runSearch(db, this.#search.find(call)) })),
  )
  readonly #counts = new QueryCache(each((db, call: CountCall) => runSearch(db, this.#search.count(call))))
  readonly #records = new QueryCache(
    each(async (db, kind: RecordKind, id: string) => ({ found: await runSearch(db, this.#search.get(kind, id)) })),
  )
  readonly #stats = new QueryCache(each((db, now: Millis) => queryStats(db, now)))
  protected readonly caches: readonly TransactionCache[] = [this.#pages, this.#counts, this.#records, this.#stats]

  constructor(store: string) {
    super()
    this.#search = new RecordSearch(createDialect(store))
  }

  find<K extends RecordKind>(call: FindCall<K>): RecordPage<K> {
    return (this.#pages.get(call)?.found ?? { items: [], next: undefined }) as RecordPage<K>
  }

  count(call: CountCall): RecordCount {
    return this.#counts.get(call) ?? { count: 0, next: undefined }
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    return this.#records.get(kind, id)?.found as RecordTypes[K] | undefined
  }

  stats(now: Millis): TableStats {
    return (now === UNKNOWN_NOW ? undefined : this.#stats.get(now)) ?? NO_STATS
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
