// `PostgresRecords` searches records and reads stats, in bounded steps through the primary key, backwards by default.
import { NEVER, type Millis } from '../../clock.ts'
import type {
  CountCall,
  EventRecord,
  RecordFilter,
  FindCall,
  DeadLetterRecord,
  UnroutedFlow,
  UnroutedRecord,
  RecordKind,
  RecordTypes,
  RunRecord,
} from '../contract/index.ts'
import type { DeadLetterRow, UnroutedRow, RecordPage, RecordQueries, RunRow, TableStats } from '../core/tables.ts'
import { parseRunNumber } from '../core/commit-context.ts'
import { parseSkips } from '../../model/routing.ts'
import { toReceipt } from './event-rows.ts'
import { LANE_COLUMNS, toLane } from './lane-rows.ts'
import { QueryCache, type Db, type TransactionTable, type Statement } from './row-cache.ts'
import { DEAD_LETTER_COLUMNS, toDeadLetterRow } from './dead-letters.ts'
import { UNROUTED_COLUMNS, toUnroutedRow } from './unrouted.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { RUN_COLUMNS, toRunRow } from './runs.ts'
import { toAuditRecord } from './docs.ts'
import { queryStats } from './stats.ts'
import { bytes, number, numbers, text, texts, escapeText, type Row, type Value } from './values.ts'

/** One page scans at most this many rows, with any filter. */
const ROWS_PER_PAGE = 20_000

/** `RecordMapping` is where a kind of record is stored, and the filters it supports. */
interface RecordMapping<K extends RecordKind> {
  readonly table: string
  readonly columns: string
  /** A column that grows from older to newer records; pages and cursors use it. */
  readonly order: string
  readonly where: Readonly<Partial<Record<keyof RecordFilter, (n: string) => string>>>
  read(row: Row, ids: ResolveEventIds): RecordTypes[K]
  /** Returns the events that the record names. */
  eventSeqsOf?(row: Row): readonly number[]
  /** The condition on $1 that finds a record by its id. */
  readonly byId: string
  idOf(id: string): string | number | undefined
}

type ResolveEventIds = (seqs: readonly number[]) => readonly string[]

interface FoundRecord {
  readonly found: unknown
}

const LANE_FILTERS = {
  flow: (n: string) => `flow = ${n}`,
  lane: (n: string) => `lane = ${n}`,
  tenant: (n: string) => `tenant = ${n}`,
}
const between = (column: string): RecordMapping<RecordKind>['where'] => ({
  from: (n) => `${column} >= ${n}`,
  to: (n) => `${column} < ${n}`,
})

const EVENT_COLUMNS = `id, source, type, time, tenant, subject, attributes, arrived, lanes, size, purged_hash,
  (select count(*) from receipts where receipts.event = events.seq), skips,
  (select json_agg(json_build_array(flow, reason, error) order by marks.id)::text from marks where marks.event = events.seq)`
const AUDIT_COLUMNS = 'id, at, who, what, chain'
const parseNumericId = (id: string): number | undefined => (/^\d{1,15}$/.test(id) ? Number(id) : undefined)

export class PostgresRecords implements RecordQueries, TransactionTable {
  readonly #kinds: { readonly [K in RecordKind]: RecordMapping<K> }
  readonly #found = new QueryCache<[call: FindCall<RecordKind>], FoundRecord>()
  readonly #counted = new QueryCache<[call: CountCall], { readonly count: number; readonly next: string | undefined }>()
  readonly #got = new QueryCache<[kind: RecordKind, id: string], FoundRecord>()
  readonly #stats = new QueryCache<[now: Millis], TableStats>()

  constructor(name: string) {
    this.#kinds = {
      events: {
        table: 'events',
        columns: EVENT_COLUMNS,
        order: 'seq',
        where: {
          source: (n) => `source = ${n}`,
          withoutSource: (n) => `not starts_with(source, ${n})`,
          type: (n) => `type = ${n}`,
          tenant: (n) => `tenant = ${n}`,
          lane: (n) => `${n} = any(lanes)`,
          ...between('arrived'),
        },
        read: toEventRecord,
        byId: 'id = $1',
        idOf: escapeText,
      },
      lanes: {
        table: 'lanes',
        columns: LANE_COLUMNS.join(', '),
        order: 'row',
        where: { flow: LANE_FILTERS.flow, tenant: LANE_FILTERS.tenant, lane: (n) => `id = ${n}` },
        read: (row) => toLane(row),
        byId: 'id = $1',
        idOf: escapeText,
      },
      runs: {
        table: 'runs',
        columns: RUN_COLUMNS,
        order: 'n',
        where: { ...LANE_FILTERS, ...between('ended') },
        read: (row, ids) => toRunRecord(toRunRow(row, name), ids),
        eventSeqsOf: (row) => numbers(row[12]),
        byId: 'n = $1',
        idOf: (id) => {
          const n = id.startsWith(`${name}-`) ? parseRunNumber(id) : Number.NaN
          return Number.isSafeInteger(n) ? n : undefined
        },
      },
      dead: {
        table: 'letters',
        columns: DEAD_LETTER_COLUMNS,
        order: 'ord',
        where: { ...LANE_FILTERS, ...between('at') },
        read: (row, ids) => toDeadLetterRecord(toDeadLetterRow(row), ids),
        eventSeqsOf: (row) => toDeadLetterRow(row).placements.map((place) => place.event),
        byId: 'id = $1',
        idOf: escapeText,
      },
      marks: {
        table: 'marks',
        columns: UNROUTED_COLUMNS,
        order: 'id',
        where: { flow: LANE_FILTERS.flow, ...between('since') },
        read: (row, ids) => toUnroutedRecord(toUnroutedRow(row), ids),
        eventSeqsOf: (row) => [number(row[1])],
        byId: 'id = $1',
        idOf: parseNumericId,
      },
      audit: {
        table: 'audit',
        columns: AUDIT_COLUMNS,
        order: 'id',
        where: between('at'),
        read: toAuditRecord,
        byId: 'id = $1',
        idOf: parseNumericId,
      },
    }
  }

  find<K extends RecordKind>(call: FindCall<K>): RecordPage<K> {
    return (this.#found.get(call)?.found ?? { items: [], next: undefined }) as RecordPage<K>
  }

  count(call: CountCall): { readonly count: number; readonly next: string | undefined } {
    return this.#counted.get(call) ?? { count: 0, next: undefined }
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    return this.#got.get(kind, id)?.found as RecordTypes[K] | undefined
  }

  stats(now: Millis): TableStats {
    return (
      (now === UNKNOWN_NOW ? undefined : this.#stats.get(now)) ?? {
        flows: [],
        deadLetters: 0,
        unrouted: [],
        limits: [],
        bytes: 0,
      }
    )
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
      this.#found.load(async (call) => ({ found: await this.#queryPage(db, call) })),
      this.#counted.load((call) => this.#queryCount(db, call)),
      this.#got.load(async (kind, id) => ({ found: await this.#queryOne(db, kind, id) })),
      this.#stats.load((now) => queryStats(db, now)),
    ])
  }

  buildWrites(): readonly Statement[] {
    return []
  }

  async #queryPage<K extends RecordKind>(
    db: Db,
    { kind, filter, cursor, n, oldestFirst = false }: FindCall<K>,
  ): Promise<RecordPage<K>> {
    const kept: RecordMapping<K> = this.#kinds[kind]
    const asked = buildWhere(kept, filter)
    if (asked === undefined) return { items: [], next: undefined }
    const range = await this.#findScanRange(db, kept, cursor, oldestFirst)
    const rows = await db.query(
      `select ${kept.order}, ${kept.columns} from ${kept.table} where ${range.where} ${asked.where}
       order by ${kept.order} ${oldestFirst ? 'asc' : 'desc'} limit ${n + 1}`,
      [...range.bounds, ...asked.values],
    )
    const shown = rows.slice(0, n)
    const stopped = rows.length > n ? number(shown.at(-1)?.[0] ?? 0) : range.far
    return {
      items: await this.#toRecords(
        db,
        kept,
        shown.map((row) => row.slice(1)),
      ),
      next: stopped?.toString(),
    }
  }

  async #toRecords<K extends RecordKind>(
    db: Db,
    kept: RecordMapping<K>,
    rows: readonly Row[],
  ): Promise<readonly RecordTypes[K][]> {
    const named = kept.eventSeqsOf === undefined ? [] : rows.flatMap((row) => kept.eventSeqsOf?.(row) ?? [])
    const ids = named.length === 0 ? [] : await db.query('select seq, id from events where seq = any($1)', [named])
    const known = new Map(ids.map(([seq, id]) => [number(seq), text(id)]))
    return rows.map((row) => kept.read(row, (seqs) => seqs.flatMap((seq) => known.get(seq) ?? [])))
  }

  async #queryCount(
    db: Db,
    { kind, filter, cursor, atMost }: CountCall,
  ): Promise<{ count: number; next: string | undefined }> {
    const kept: RecordMapping<RecordKind> = this.#kinds[kind]
    const asked = buildWhere(kept, filter)
    if (asked === undefined) return { count: 0, next: undefined }
    const range = await this.#findScanRange(db, kept, cursor, false)
    const [row] = await db.query(
      `select count(*), min(place) from (select ${kept.order} as place from ${kept.table}
       where ${range.where} ${asked.where} order by ${kept.order} desc limit ${atMost}) found`,
      [...range.bounds, ...asked.values],
    )
    const count = number(row?.[0])
    // The count has reached its maximum. The next count finds out whether more records follow.
    return { count, next: (count < atMost ? range.far : number(row?.[1]))?.toString() }
  }

  async #queryOne<K extends RecordKind>(db: Db, kind: K, id: string): Promise<RecordTypes[K] | undefined> {
    const kept: RecordMapping<K> = this.#kinds[kind]
    const place = kept.idOf(id)
    if (place === undefined) return undefined
    const rows = await db.query(`select ${kept.columns} from ${kept.table} where ${kept.byId}`, [place])
    const [record] = await this.#toRecords(db, kept, rows)
    if (kind !== 'events' || record === undefined) return record
    const [payload] = await db.query('select request, body, seq from events where id = $1', [place])
    const receipts = await db.query('select at, kind, id, body_hash from receipts where event = $1 order by n', [
      number(payload?.[2]),
    ])
    return { ...record, body: bytes(payload?.[1]), request: bytes(payload?.[0]), receipts: receipts.map(toReceipt) }
  }

  /** `findScanRange` returns the range of rows behind the cursor that one call may scan. */
  async #findScanRange(
    db: Db,
    { table, order }: Pick<RecordMapping<RecordKind>, 'table' | 'order'>,
    cursor: string,
    up: boolean,
  ): Promise<{ readonly where: string; readonly bounds: readonly number[]; readonly far: number | undefined }> {
    const [behind, upTo, way] = up ? ['>', '<=', 'asc'] : ['<', '>=', 'desc']
    const from = cursor === '' ? (up ? -1 : NEVER) : Number(cursor)
    const query = `select ${order} from ${table} where ${order} ${behind} $1 order by ${order} ${way} limit 1 offset ${ROWS_PER_PAGE - 1}`
    const last = (await db.query(query, [from]))[0]?.[0]
    if (last === undefined)
      return { where: `${order} ${behind} $1 and $2::bigint >= 0`, bounds: [from, 0], far: undefined }
    return { where: `${order} ${behind} $1 and ${order} ${upTo} $2`, bounds: [from, number(last)], far: number(last) }
  }
}

/** `buildWhere` returns undefined if this kind of record does not support one of the filters. */
function buildWhere(
  kept: Pick<RecordMapping<RecordKind>, 'where'>,
  filter: RecordFilter,
): { readonly where: string; readonly values: readonly (string | number)[] } | undefined {
  const given = Object.entries(filter).filter(([, wanted]) => wanted !== undefined)
  const clauses = given.map(([name], at) => kept.where[name as keyof RecordFilter]?.(`$${at + 3}`))
  if (clauses.includes(undefined)) return undefined
  return {
    where: clauses.map((clause) => `and ${clause}`).join(' '),
    values: given.map(([, wanted]) => (typeof wanted === 'string' ? escapeText(wanted) : (wanted as number))),
  }
}

function toEventRecord(row: Row): EventRecord {
  return {
    id: text(row[0]),
    source: text(row[1]),
    type: text(row[2]),
    time: number(row[3]),
    tenant: text(row[4]),
    subject: text(row[5]),
    attributes: text(row[6]),
    arrived: number(row[7]),
    lanes: texts(row[8]),
    size: number(row[9]),
    purged: row[10] !== '',
    duplicates: number(row[11]),
    skips: parseSkips(String(row[12] ?? '')),
    unrouted: parseUnroutedFlows(row[13]),
  }
}

function toRunRecord(row: RunRow, ids: ResolveEventIds): RunRecord {
  return { ...row, events: ids(row.events) }
}

function toDeadLetterRecord(row: DeadLetterRow, ids: ResolveEventIds): DeadLetterRecord {
  const { order: _order, group: _group, placements: places, ...letter } = row
  return { ...letter, events: ids(places.map((place) => place.event)) }
}

function toUnroutedRecord(row: UnroutedRow, ids: ResolveEventIds): UnroutedRecord {
  const { id, flow, reason, error, since, tries } = row
  return { id, flow, reason, error, since, tries, event: ids([row.event])[0] ?? '' }
}

/** The input is JSON of escaped texts, or null for none. */
function parseUnroutedFlows(json: Value | undefined): readonly UnroutedFlow[] {
  const rows = JSON.parse(String(json ?? '[]')) as readonly [string, UnroutedFlow['reason'], string][]
  return rows.map(([flow, reason, error]) => ({ flow: text(flow), reason, error: text(error) }))
}
