// `SqliteRecords` searches records and computes stats. It scans the primary key in bounded steps, newest first by
// default.
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
import type { LaneId } from '../../model/identity.ts'
import type { LaneHealth } from '../../model/lane.ts'
import { computeStretch } from '../../model/limit.ts'
import type {
  DeadLetterRow,
  UnroutedRow,
  RecordPage,
  PauseRow,
  RecordQueries,
  RunRow,
  TableStats,
} from '../core/tables.ts'
import { parseRunNumber } from '../core/commit-context.ts'
import { parseSkips } from '../../model/routing.ts'
import { SqliteEvents } from './events.ts'
import type { LaneRunIndex } from './lane-runs.ts'
import { LANE_COLUMNS, toLane, type SqliteLanes } from './lanes.ts'
import { DEAD_LETTER_COLUMNS, toDeadLetterRow, UNROUTED_COLUMNS, toUnroutedRow, RUN_COLUMNS, toRunRow } from './runs.ts'
import { toAuditRecord } from './small-tables.ts'
import { number, text, type Row, type Statements } from './statements.ts'

/** The most rows that one page reads, however few match. */
const ROWS_PER_PAGE = 20_000

/** `RecordMapping` says where a kind of record is stored and by what it can be searched. */
interface RecordMapping<K extends RecordKind> {
  readonly table: string
  readonly columns: string
  /** The column that orders pages and cursors; it grows with time. */
  readonly order: string
  readonly where: Readonly<Partial<Record<keyof RecordFilter, string>>>
  /** The condition for the records of one lane, if an index has them. */
  readonly ofLane?: (lane: LaneId, stretch: ScanRange) => WhereClause
  read(row: Row): RecordTypes[K]
  /** Returns the value of the order column for the record with this id. */
  find(id: string): number | undefined
}

interface WhereClause {
  readonly where: string
  readonly values: readonly (string | number)[]
}

interface ScanRange {
  readonly where: string
  readonly bounds: readonly number[]
  /** The last row of the range; undefined if no row is behind it. */
  readonly end: number | undefined
  readonly low: number
  readonly high: number
}

const EVENT_COLUMNS = `id, source, type, time, tenant, subject, attributes, arrived, lanes, length(body), purged_hash,
  (select count(*) from receipts where receipts.event = events.seq), skips,
  (select json_group_array(json_array(flow, reason, error)) from marks where marks.event = events.seq)`

/** Lanes are counted up to this number: stats are read often, and counting a million lanes takes a while. */
const LANES_COUNTED = 10_000
const LANES_OF_FLOW = `select count(*) from (select 1 from lanes where flow = ? and due is not null limit ${LANES_COUNTED})`
const LIVE_OF_FLOW = `select count(*) from lanes indexed by lanes_live where flow = ? and lease is not null and lease > ?`
const NEXT_WAITING = `select flow from lanes indexed by lanes_line where flow > ? and due is not null order by flow limit 1`
/** A lane held without an end has no deadline, even while its run is live. */
const NEXT_LIVE = `select flow from lanes indexed by lanes_live where flow > ? and lease is not null order by flow limit 1`
/** Rows of dead letters are long, so this query reads the index only. */
const NEXT_DEAD = `select flow from letters indexed by letters_flow where flow > ? order by flow limit 1`
const NEXT_REASON = `select reason, since from marks indexed by marks_since where reason > ? order by reason, since limit 1`
/** The inner query selects the limits to show before the outer one reads their state. */
const LIMITS = `select l.name, l.state ->> 'epoch', l.state ->> 'pausedUntil',
    max(l.state ->> 'last', coalesce(l.state ->> 'promised', 0)), l.state ->> 'stretch', l.state ->> 'stretchedAt'
  from (select name from limits order by idle_at desc limit 1000) shown join limits l on l.name = shown.name`
/** One query per health: a minimum over all would read every lane. */
const LINES: readonly LaneHealth[] = [0, 1, 2]
/** Returns the ids in the order of the list. */
const IDS_OF = `select e.id from json_each(?) s cross join events e on e.seq = s.value order by s.key`
const BYTES = `select (p.page_count - f.freelist_count) * s.page_size
  from pragma_page_count p, pragma_freelist_count f, pragma_page_size s`

interface SqliteRecordsDependencies {
  readonly events: SqliteEvents
  readonly lanes: Pick<SqliteLanes, 'findFirstDue'>
  readonly laneRuns: LaneRunIndex | undefined
  /** The name of the store. */
  readonly store: string
}

export class SqliteRecords implements RecordQueries {
  readonly #sql: Statements
  readonly #dependencies: SqliteRecordsDependencies
  readonly #kinds: { readonly [K in RecordKind]: RecordMapping<K> }

  constructor(sql: Statements, of: SqliteRecordsDependencies) {
    this.#sql = sql
    this.#dependencies = of
    const placeOf = (query: string) => (id: string) => number(sql.get(query, id)?.[0]) as number | undefined
    this.#kinds = {
      events: {
        table: 'events',
        columns: EVENT_COLUMNS,
        order: 'seq',
        where: {
          source: 'source = ?',
          withoutSource: 'instr(source, ?) <> 1',
          type: 'type = ?',
          tenant: 'tenant = ?',
          lane: `instr(',' || lanes || ',', ',' || ? || ',') > 0`,
          from: 'arrived >= ?',
          to: 'arrived < ?',
        },
        read: toEventRecord,
        find: placeOf('select seq from events where id = ?'),
      },
      lanes: {
        table: 'lanes',
        columns: LANE_COLUMNS,
        order: 'row',
        where: { flow: 'flow = ?', tenant: 'tenant = ?', lane: 'id = ?' },
        read: toLane,
        find: placeOf('select row from lanes where id = ?'),
      },
      runs: {
        table: 'runs',
        columns: RUN_COLUMNS,
        order: 'n',
        where: { ...LANE_FILTERS, from: 'ended >= ?', to: 'ended < ?' },
        ...(of.laneRuns !== undefined && { ofLane: filterByLaneRuns(of.laneRuns) }),
        read: (row) => this.#toRunRecord(toRunRow(row, of.store)),
        find: (id) => (id.startsWith(`${of.store}-`) ? parseRunNumber(id) : undefined),
      },
      dead: {
        table: 'letters',
        columns: DEAD_LETTER_COLUMNS,
        order: 'ord',
        where: { ...LANE_FILTERS, from: 'at >= ?', to: 'at < ?' },
        read: (row) => this.#toDeadLetterRecord(toDeadLetterRow(row)),
        find: placeOf('select ord from letters where id = ?'),
      },
      marks: {
        table: 'marks',
        columns: UNROUTED_COLUMNS,
        order: 'id',
        // The `+` keeps SQLite from using the index on the flow, which has another order: it would read and sort all
        // records of a flow.
        where: { flow: '+flow = ?', from: 'since >= ?', to: 'since < ?' },
        read: (row) => this.#toUnroutedRecord(toUnroutedRow(row)),
        find: Number,
      },
      audit: {
        table: 'audit',
        columns: 'id, at, who, what, chain',
        order: 'id',
        where: { from: 'at >= ?', to: 'at < ?' },
        read: toAuditRecord,
        find: Number,
      },
    }
  }

  find<K extends RecordKind>({ kind, filter, cursor, n, oldestFirst = false }: FindCall<K>): RecordPage<K> {
    const mapping: RecordMapping<K> = this.#kinds[kind]
    const stretch = this.#findScanRange(mapping, cursor, oldestFirst)
    const clause = this.#buildWhere(mapping, filter, stretch)
    if (clause === undefined) return { items: [], next: undefined }
    const rows = this.#sql.all(
      `select ${mapping.order}, ${mapping.columns} from ${mapping.table} where ${stretch.where} ${clause.where}
       order by ${mapping.order} ${oldestFirst ? 'asc' : 'desc'} limit ?`,
      ...stretch.bounds,
      ...clause.values,
      n + 1,
    )
    const shown = rows.slice(0, n)
    const stopped = rows.length > n ? number(shown.at(-1)?.[0] ?? 0) : stretch.end
    return { items: shown.map((row) => mapping.read(row.slice(1))), next: stopped?.toString() }
  }

  count({ kind, filter, cursor, atMost }: CountCall): { readonly count: number; readonly next: string | undefined } {
    const mapping = this.#kinds[kind]
    const stretch = this.#findScanRange(mapping, cursor, false)
    const clause = this.#buildWhere(mapping, filter, stretch)
    if (clause === undefined) return { count: 0, next: undefined }
    const [found, last] =
      this.#sql.get(
        `select count(*), min(place) from (select ${mapping.order} as place from ${mapping.table}
         where ${stretch.where} ${clause.where} order by ${mapping.order} desc limit ?)`,
        ...stretch.bounds,
        ...clause.values,
        atMost,
      ) ?? []
    const count = number(found)
    // `count` reached `atMost`: the next call finds out whether there are more.
    return { count, next: (count < atMost ? stretch.end : number(last ?? 0))?.toString() }
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    const mapping: RecordMapping<K> = this.#kinds[kind]
    const place = mapping.find(id)
    if (place === undefined || Number.isNaN(place)) return undefined
    const row = this.#sql.get(`select ${mapping.columns} from ${mapping.table} where ${mapping.order} = ?`, place)
    if (row === undefined) return undefined
    const record = mapping.read(row)
    if (kind !== 'events') return record
    const event = this.#dependencies.events.findById(id)
    if (event === undefined) return record
    return {
      ...record,
      body: event.body,
      request: event.request,
      receipts: this.#dependencies.events.findReceipts(event.seq),
    }
  }

  stats(now: Millis): TableStats {
    return {
      flows: this.#readFlowNames().map((flow) => this.#readFlowStats(flow, now)),
      deadLetters: number(this.#sql.get('select count(*) from letters')?.[0]),
      unrouted: this.#readUnroutedStats(),
      limits: this.#sql.all(LIMITS).map((row) => ({
        name: text(row[0]),
        epoch: number(row[1]),
        pausedUntil: number(row[2]),
        last: number(row[3]),
        stretch: computeStretch({ stretch: number(row[4]), stretchedAt: number(row[5]) }, now),
      })),
      bytes: this.bytes(),
    }
  }

  /** `bytes` returns the size of the file without its free pages. */
  bytes(): number {
    return number(this.#sql.get(BYTES)?.[0])
  }

  /** `#readFlowNames` needs one lookup per flow, not per lane or dead letter: each step jumps to the next flow in
      the index. */
  #readFlowNames(): readonly string[] {
    const flows = new Set(this.#sql.all('select flow from pauses').map(([flow]) => text(flow)))
    for (const next of [NEXT_WAITING, NEXT_LIVE, NEXT_DEAD]) {
      for (let at = this.#sql.get(next, ''); at !== undefined; at = this.#sql.get(next, text(at[0]))) {
        flows.add(text(at[0]))
      }
    }
    return [...flows]
  }

  #readUnroutedStats(): TableStats['unrouted'] {
    const found: TableStats['unrouted'][number][] = []
    for (let at = this.#sql.get(NEXT_REASON, ''); at !== undefined; at = this.#sql.get(NEXT_REASON, text(at[0]))) {
      const reason = text(at[0]) as UnroutedRow['reason']
      const count = number(this.#sql.get('select count(*) from marks where reason = ?', reason)?.[0])
      found.push({ reason, count, oldest: number(at[1]) })
    }
    return found
  }

  #readFlowStats(flow: string, now: Millis): TableStats['flows'][number] {
    const pause = this.#sql.get('select reason, by, since from pauses where flow = ?', flow)
    const due = this.#dependencies.lanes.findFirstDue(flow, LINES)
    const paused: PauseRow | undefined =
      pause === undefined ? undefined : { reason: text(pause[0]), by: text(pause[1]), since: number(pause[2]) }
    return {
      flow,
      lanes: number(this.#sql.get(LANES_OF_FLOW, flow)?.[0]),
      live: number(this.#sql.get(LIVE_OF_FLOW, flow, now)?.[0]),
      due: due === NEVER ? undefined : due,
      paused,
    }
  }

  /** `#buildWhere` returns undefined if this kind of record does not have a filtered field. */
  #buildWhere(
    { where, ofLane }: Pick<RecordMapping<RecordKind>, 'where' | 'ofLane'>,
    filter: RecordFilter,
    stretch: ScanRange,
  ): WhereClause | undefined {
    const given = Object.entries(filter).filter(([, wanted]) => wanted !== undefined)
    const clauses = given.map(([name]) => where[name as keyof RecordFilter])
    if (clauses.includes(undefined)) return undefined
    const all = clauses.map((clause) => `and ${clause}`).join(' ')
    const values = given.map(([, wanted]) => wanted as string | number)
    if (ofLane === undefined || filter.lane === undefined) return { where: all, values }
    const listed = ofLane(filter.lane, stretch)
    return { where: `${all} and ${listed.where}`, values: [...values, ...listed.values] }
  }

  /** `#findScanRange` returns the range of rows behind the cursor that one call may read. */
  #findScanRange(
    { table, order }: Pick<RecordMapping<RecordKind>, 'table' | 'order'>,
    cursor: string,
    up: boolean,
  ): ScanRange {
    const [behind, upTo, way] = up ? ['>', '<=', 'asc'] : ['<', '>=', 'desc']
    const from = cursor === '' ? (up ? -1 : NEVER) : Number(cursor)
    const query = `select ${order} from ${table} where ${order} ${behind} ? order by ${order} ${way} limit 1 offset ?`
    const last = this.#sql.get(query, from, ROWS_PER_PAGE - 1)?.[0]
    const far = last === undefined ? undefined : number(last)
    const [low, high] = up ? [from, far ?? NEVER] : [far ?? -1, from]
    if (far === undefined) return { where: `${order} ${behind} ?`, bounds: [from], end: far, low, high }
    return { where: `${order} ${behind} ? and ${order} ${upTo} ?`, bounds: [from, far], end: far, low, high }
  }

  #readEventIds(seqs: readonly number[]): readonly string[] {
    return seqs.length === 0 ? [] : this.#sql.all(IDS_OF, JSON.stringify(seqs)).map(([id]) => text(id))
  }

  #toRunRecord(row: RunRow): RunRecord {
    return { ...row, events: this.#readEventIds(row.events) }
  }

  #toDeadLetterRecord(row: DeadLetterRow): DeadLetterRecord {
    const { order: _order, group: _group, placements: places, ...letter } = row
    return { ...letter, events: this.#readEventIds(places.map((place) => place.event)) }
  }

  #toUnroutedRecord(row: UnroutedRow): UnroutedRecord {
    const { id, flow, reason, error, since, tries } = row
    return { id, flow, reason, error, since, tries, event: this.#readEventIds([row.event])[0] ?? '' }
  }
}

/** `filterByLaneRuns` uses the index of runs by lane: one lane has few of all runs. */
function filterByLaneRuns(laneRuns: LaneRunIndex): (lane: LaneId, stretch: ScanRange) => WhereClause {
  return (lane, { low, high }) => ({
    where: `n in (select run from lane_runs where lane = ? and run between ? and ? union all select value from json_each(?))`,
    values: [lane, low, high, JSON.stringify(laneRuns.findInMemory(lane))],
  })
}

const LANE_FILTERS = { flow: 'flow = ?', tenant: 'tenant = ?', lane: 'lane = ?' }

function toEventRecord(row: Row): EventRecord {
  const lanes = text(row[8])
  return {
    id: text(row[0]),
    source: text(row[1]),
    type: text(row[2]),
    time: number(row[3]),
    tenant: text(row[4]),
    subject: text(row[5]),
    attributes: text(row[6]),
    arrived: number(row[7]),
    lanes: lanes === '' ? [] : lanes.split(','),
    size: number(row[9]),
    purged: row[10] !== '',
    duplicates: number(row[11]),
    skips: parseSkips(text(row[12])),
    unrouted: parseUnroutedFlows(text(row[13])),
  }
}

function parseUnroutedFlows(json: string): readonly UnroutedFlow[] {
  const rows = JSON.parse(json) as readonly [string, UnroutedFlow['reason'], string][]
  return rows.map(([flow, reason, error]) => ({ flow, reason, error }))
}
