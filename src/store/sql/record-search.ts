// `RecordSearch` searches the records of an SQL store, in bounded steps through the primary key, newest first by default. It yields
// its queries and receives their rows: SQLite answers each at once, PostgreSQL when its reply has arrived.
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane, Rank } from '../../model/lane.ts'
import { parseSkips } from '../../model/routing.ts'
import type {
  CountCall,
  EventRecord,
  FindCall,
  RecordFilter,
  RecordKind,
  RecordTypes,
  UnroutedReason,
} from '../contract/index.ts'
import { parseRunNumber } from '../core/commit-context.ts'
import {
  toDeadLetterRecord,
  toRunRecord,
  toUnroutedRecord,
  type PlacementRow,
  type RecordPage,
  type ResolveEventIds,
} from '../core/tables.ts'
import { findEventsInLane } from './placed-events.ts'
import {
  AUDIT_COLUMNS,
  DEAD_LETTER_COLUMNS,
  RUN_COLUMNS,
  toAuditRecord,
  toDeadLetterRow,
  toReceipt,
  toRunRow,
  toUnroutedRow,
  UNROUTED_COLUMNS,
  type CellReader,
  type SqlRow,
} from './rows.ts'

/** `SqlQuery` marks each parameter by a question mark. `limit` is the value of the last one, if it limits the rows. */
export interface SqlQuery {
  readonly sql: string
  readonly values: readonly unknown[]
  readonly limit?: number
}

export type SqlSearch<T> = Generator<SqlQuery, T, readonly SqlRow[]>

/** `SqlDialect` is what differs between the SQL stores. */
export interface SqlDialect {
  readonly cells: CellReader
  /** The name of the store, the prefix of its run ids. */
  readonly store: string
  readonly lanes: { readonly columns: string; readonly read: (row: SqlRow) => Lane }
  readonly sizeOfEvent: string
  /** The unrouted flows of an event as JSON: an array of flow, reason and error of each. */
  readonly unroutedOfEvent: string
  readonly where: {
    readonly withoutSource: string
    readonly laneOfEvent: string
    /** The parameter is what `bindSeqs` returns. */
    readonly amongEvents: string
    readonly flowOfUnrouted: string
    /** The conditions on a subject use the index of events by subject. Each parameter is the subject. */
    readonly subjectOfEvent: string
    readonly subjectOfDeadLetter: string
    readonly subjectOfUnrouted: string
  }
  readonly bindSeqs: (seqs: readonly number[]) => unknown
  /** Returns the first placements of a lane. */
  readonly findPlacements: (
    lane: Lane,
    rank: Rank,
    n: number,
  ) => SqlSearch<readonly Pick<PlacementRow, 'pos' | 'event'>[]>
  /** Selects the number and the id of the matching events. */
  readonly selectEventIds: (seqs: readonly number[]) => SqlQuery
  /** The condition for the runs of a lane, if an index has them. */
  readonly whereRunOfLane?: (lane: LaneId, range: Pick<ScanRange, 'low' | 'high'>) => WhereClause
}

/** The most rows that one page reads, however few match. */
const ROWS_PER_PAGE = 20_000

/** `RecordMapping` says where a kind of record is stored and by what it can be searched. */
interface RecordMapping<K extends RecordKind> {
  readonly table: string
  readonly columns: string
  /** The column that orders pages and cursors; it grows with time. */
  readonly order: string
  readonly where: Readonly<Partial<Record<keyof RecordFilter, string>>>
  readonly whereLane?: SqlDialect['whereRunOfLane']
  /** The conditions that an index in the order of the pages covers. A search reads only the rows of the first one given. */
  readonly indexed?: readonly (readonly [name: keyof RecordFilter, condition: string])[]
  read(row: SqlRow, ids: ResolveEventIds): RecordTypes[K]
  /** Returns the events whose ids the record needs. */
  eventsOf?(row: SqlRow): readonly number[]
  /** The column of the id, and its value for an id from outside; undefined if no record can have that id. */
  readonly idColumn: string
  toIdValue(id: string): string | number | undefined
}

interface WhereClause {
  readonly where: string
  readonly values: readonly unknown[]
}

interface ScanRange extends WhereClause {
  /** The last row of the range; undefined if no row is behind it. */
  readonly end: number | undefined
  readonly low: number
  readonly high: number
}

const EVENT_COLUMNS = 'id, source, type, time, tenant, subject, attributes, arrived, lanes'
const DUPLICATES_OF_EVENT = '(select count(*) from receipts where receipts.event = events.seq)'
/** The second condition lets the database use the index of events by tenant, which leaves out events without a tenant. */
const TENANT_OF_EVENT = `tenant = ? and tenant <> ''`
const NAMES = { flow: 'flow = ?', tenant: 'tenant = ?' }
const between = (column: string): RecordMapping<RecordKind>['where'] => ({
  from: `${column} >= ?`,
  to: `${column} < ?`,
})
const keepText = (id: string): string => id
const parseNumericId = (id: string): number | undefined => (/^\d{1,15}$/.test(id) ? Number(id) : undefined)

export class RecordSearch {
  readonly #dialect: SqlDialect
  readonly #kinds: { readonly [K in RecordKind]: RecordMapping<K> }

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect
    const { cells, lanes, store, where, sizeOfEvent, unroutedOfEvent } = dialect
    this.#kinds = {
      events: {
        table: 'events',
        columns: `${EVENT_COLUMNS}, ${sizeOfEvent}, purged_hash, ${DUPLICATES_OF_EVENT}, skips, ${unroutedOfEvent}`,
        order: 'seq',
        where: {
          source: 'source = ?',
          withoutSource: where.withoutSource,
          type: 'type = ?',
          tenant: 'tenant = ?',
          subject: where.subjectOfEvent,
          lane: where.laneOfEvent,
          ...between('arrived'),
        },
        indexed: [
          ['subject', where.subjectOfEvent],
          ['tenant', TENANT_OF_EVENT],
        ],
        read: (row) => toEventRecord(cells, row),
        idColumn: 'id',
        toIdValue: keepText,
      },
      lanes: {
        table: 'lanes',
        columns: lanes.columns,
        order: 'row',
        where: { ...NAMES, lane: 'id = ?' },
        read: lanes.read,
        idColumn: 'id',
        toIdValue: keepText,
      },
      runs: {
        table: 'runs',
        columns: RUN_COLUMNS,
        order: 'n',
        where: { ...NAMES, lane: 'lane = ?', ...between('ended') },
        whereLane: dialect.whereRunOfLane,
        read: (row, ids) => toRunRecord(toRunRow(cells, row, store), ids),
        eventsOf: (row) => toRunRow(cells, row, store).events,
        idColumn: 'n',
        toIdValue: (id) => parseRunId(id, store),
      },
      dead: {
        table: 'letters',
        columns: DEAD_LETTER_COLUMNS,
        order: 'ord',
        where: { ...NAMES, subject: where.subjectOfDeadLetter, lane: 'lane = ?', ...between('at') },
        read: (row, ids) => toDeadLetterRecord(toDeadLetterRow(cells, row), ids),
        eventsOf: (row) => toDeadLetterRow(cells, row).placements.map((placement) => placement.event),
        idColumn: 'id',
        toIdValue: keepText,
      },
      unrouted: {
        table: 'marks',
        columns: UNROUTED_COLUMNS,
        order: 'id',
        where: { flow: where.flowOfUnrouted, subject: where.subjectOfUnrouted, ...between('since') },
        read: (row, ids) => toUnroutedRecord(toUnroutedRow(cells, row), ids),
        eventsOf: (row) => [toUnroutedRow(cells, row).event],
        idColumn: 'id',
        toIdValue: parseNumericId,
      },
      audit: {
        table: 'audit',
        columns: AUDIT_COLUMNS,
        order: 'id',
        where: between('at'),
        read: (row) => toAuditRecord(cells, row),
        idColumn: 'id',
        toIdValue: parseNumericId,
      },
    }
  }

  *find<K extends RecordKind>(call: FindCall<K>): SqlSearch<RecordPage<K>> {
    const { kind, cursor, n, oldestFirst = false } = call
    const mapping: RecordMapping<K> = this.#kinds[kind]
    const { table, columns, order } = mapping
    const { filter, among } = yield* this.#resolvePlaced(kind, call.filter)
    const range = yield* this.#findScanRange(mapping, { filter, cursor, oldestFirst, among })
    const clause = buildWhere(mapping, filter, range)
    if (clause === undefined) return { items: [], next: undefined }
    const rows = yield {
      sql: `select ${order}, ${columns} from ${table} where ${range.where} ${clause.where}
        order by ${order} ${oldestFirst ? 'asc' : 'desc'} limit ?`,
      values: [...range.values, ...clause.values],
      limit: n + 1,
    }
    const shown = rows.slice(0, n)
    const stopped = rows.length > n ? this.#dialect.cells.number(shown.at(-1)?.[0]) : range.end
    const found = shown.map((row) => row.slice(1))
    return { items: yield* this.#toRecords(mapping, found), next: stopped?.toString() }
  }

  *count(call: CountCall): SqlSearch<{ count: number; next: string | undefined }> {
    const { kind, cursor, atMost } = call
    const mapping: RecordMapping<RecordKind> = this.#kinds[kind]
    const { table, order } = mapping
    const { filter, among } = yield* this.#resolvePlaced(kind, call.filter)
    const range = yield* this.#findScanRange(mapping, { filter, cursor, oldestFirst: false, among })
    const clause = buildWhere(mapping, filter, range)
    if (clause === undefined) return { count: 0, next: undefined }
    const [row] = yield {
      sql: `select count(*), min(place) from (select ${order} as place from ${table}
        where ${range.where} ${clause.where} order by ${order} desc limit ?) found`,
      values: [...range.values, ...clause.values],
      limit: atMost,
    }
    const count = this.#dialect.cells.number(row?.[0])
    // `count` reached `atMost`: the next call finds out whether there are more.
    return { count, next: (count < atMost ? range.end : this.#dialect.cells.number(row?.[1] ?? 0))?.toString() }
  }

  *get<K extends RecordKind>(kind: K, id: string): SqlSearch<RecordTypes[K] | undefined> {
    const mapping: RecordMapping<K> = this.#kinds[kind]
    const value = mapping.toIdValue(id)
    if (value === undefined) return undefined
    const { table, columns, idColumn } = mapping
    const rows = yield { sql: `select ${columns} from ${table} where ${idColumn} = ?`, values: [value] }
    const [record] = yield* this.#toRecords(mapping, rows)
    return kind === 'events' && record !== undefined ? { ...record, ...(yield* this.#findEventDetails(id)) } : record
  }

  *#findEventDetails(id: string): SqlSearch<Pick<EventRecord, 'body' | 'request' | 'receipts'>> {
    const { cells } = this.#dialect
    const [row] = yield { sql: 'select seq, request, body from events where id = ?', values: [id] }
    const receipts = yield {
      sql: 'select at, kind, id, body_hash from receipts where event = ? order by n',
      values: [row?.[0] ?? 0],
    }
    return {
      body: cells.bytes(row?.[2]),
      request: cells.bytes(row?.[1]),
      receipts: receipts.map((receipt) => toReceipt(cells, receipt)),
    }
  }

  *#toRecords<K extends RecordKind>(mapping: RecordMapping<K>, rows: readonly SqlRow[]): SqlSearch<RecordTypes[K][]> {
    const { cells, selectEventIds } = this.#dialect
    const seqs = rows.flatMap((row) => mapping.eventsOf?.(row) ?? [])
    const found = seqs.length === 0 ? [] : yield selectEventIds(seqs)
    const ids = new Map(found.map(([seq, id]) => [cells.number(seq), cells.text(id)]))
    return rows.map((row) => mapping.read(row, (its) => its.flatMap((seq) => ids.get(seq) ?? [])))
  }

  /** `#resolvePlaced` replaces the fields `lane` and `placed` by the numbers of the events that are in the lane now. */
  *#resolvePlaced(kind: RecordKind, filter: RecordFilter): SqlSearch<ResolvedFilter> {
    const { lane: id, placed, ...rest } = filter
    if (kind !== 'events' || placed === undefined || id === undefined) return { filter }
    const lane = yield* this.get('lanes', id)
    const events = lane === undefined ? [] : yield* findEventsInLane(lane, placed, this.#dialect)
    return { filter: rest, among: events }
  }

  /** `#findScanRange` returns the range of rows behind the cursor that one call may read. */
  *#findScanRange(
    { table, order, indexed = [] }: Pick<RecordMapping<RecordKind>, 'table' | 'order' | 'indexed'>,
    { filter, cursor, oldestFirst: up, among }: ScanCall,
  ): SqlSearch<ScanRange> {
    const [name, condition] = indexed.find(([one]) => filter[one] !== undefined && filter[one] !== '') ?? []
    const { where, bindSeqs } = this.#dialect
    const found =
      among !== undefined
        ? { where: ` and ${where.amongEvents}`, values: [bindSeqs(among)] }
        : name === undefined
          ? NO_CONDITION
          : bindCondition(condition, filter[name])
    const [behind, upTo, way] = up ? ['>', '<=', 'asc'] : ['<', '>=', 'desc']
    const from = cursor === '' ? (up ? -1 : NEVER) : Number(cursor)
    const begin = { where: `${order} ${behind} ?${found.where}`, values: [from, ...found.values] }
    const [row] = yield {
      sql: `select ${order} from ${table} where ${begin.where} order by ${order} ${way} limit 1 offset ${ROWS_PER_PAGE - 1}`,
      values: begin.values,
    }
    const end = row === undefined ? undefined : this.#dialect.cells.number(row[0])
    const [low, high] = up ? [from, end ?? NEVER] : [end ?? -1, from]
    if (end === undefined) return { ...begin, end, low, high }
    return { where: `${begin.where} and ${order} ${upTo} ?`, values: [...begin.values, end], end, low, high }
  }
}

/** `ResolvedFilter` is a filter without `placed`; only the events `among` these match, if it is set. */
interface ResolvedFilter {
  readonly filter: RecordFilter
  readonly among?: readonly number[] | undefined
}

type ScanCall = ResolvedFilter & Required<Pick<FindCall<RecordKind>, 'cursor' | 'oldestFirst'>>

const NO_CONDITION: WhereClause = { where: '', values: [] }

/** Each parameter of the condition gets the value. */
function bindCondition(condition = '', wanted: string | number = ''): WhereClause {
  return { where: ` and ${condition}`, values: Array.from(condition.matchAll(/\?/g), () => wanted) }
}

/** `buildWhere` returns undefined if this kind of record does not have a filtered field. */
function buildWhere(
  { where, whereLane }: Pick<RecordMapping<RecordKind>, 'where' | 'whereLane'>,
  filter: RecordFilter,
  range: ScanRange,
): WhereClause | undefined {
  const given = Object.entries(filter).filter(([, wanted]) => wanted !== undefined)
  if (given.some(([name]) => where[name as keyof RecordFilter] === undefined)) return undefined
  const clauses = given.map(([name, wanted]) =>
    bindCondition(where[name as keyof RecordFilter], wanted as string | number),
  )
  const all = clauses.map((clause) => clause.where).join('')
  const values = clauses.flatMap((clause) => clause.values)
  if (whereLane === undefined || filter.lane === undefined) return { where: all, values }
  const listed = whereLane(filter.lane, range)
  return { where: `${all} and ${listed.where}`, values: [...values, ...listed.values] }
}

function parseRunId(id: string, store: string): number | undefined {
  const n = id.startsWith(`${store}-`) ? parseRunNumber(id) : Number.NaN
  return Number.isSafeInteger(n) ? n : undefined
}

function toEventRecord({ text, number, texts }: CellReader, row: SqlRow): EventRecord {
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
    skips: parseSkips(text(row[12])),
    unrouted: parseJsonRows(String(row[13] ?? '[]')).map(([flow, reason, error]) => ({
      flow: text(flow),
      reason: reason as UnroutedReason,
      error: text(error),
    })),
  }
}

function parseJsonRows(json: string): readonly (readonly string[])[] {
  return JSON.parse(json) as readonly (readonly string[])[]
}
