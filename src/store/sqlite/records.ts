// Search and figures over rows: by bounded steps through the primary key, backwards unless asked otherwise.
import { NEVER, type Millis } from '../../clock.ts'
import type {
  CountCall,
  EventRecord,
  Filter,
  FindCall,
  LetterRecord,
  MarkRecord,
  RecordKind,
  Records,
  RunRecord,
} from '../contract/index.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Line } from '../../model/lane.ts'
import { stretchAt } from '../../model/limit.ts'
import type { LetterRow, MarkRow, Page, PauseRow, RecordQueries, RunRow, TableStats } from '../rules/tables.ts'
import { runNumber } from '../rules/work.ts'
import { SqliteEvents } from './events.ts'
import type { LaneRuns } from './lane-runs.ts'
import { LANE_COLUMNS, laneOf, type SqliteLanes } from './lanes.ts'
import { LETTER_COLUMNS, letterOf, MARK_COLUMNS, markOf, RUN_COLUMNS, runOf } from './runs.ts'
import { auditOf } from './small-tables.ts'
import { number, text, type Row, type Statements } from './statements.ts'

/** A page looks at no more rows than this, whatever it is looking for. */
const ROWS_PER_PAGE = 20_000

/** Where a kind of record is kept and what it can be searched by. */
interface Kept<K extends RecordKind> {
  readonly table: string
  readonly columns: string
  /** Grows with age: what pages and cursors go by. */
  readonly order: string
  readonly where: Readonly<Partial<Record<keyof Filter, string>>>
  /** Those of a lane, where an index knows them. */
  readonly ofLane?: (lane: LaneId, stretch: Stretch) => Asked
  read(row: Row): Records[K]
  /** The place in the order of the record with this id. */
  find(id: string): number | undefined
}

interface Asked {
  readonly where: string
  readonly values: readonly (string | number)[]
}

interface Stretch {
  readonly where: string
  readonly bounds: readonly number[]
  /** Where it ends; undefined when nothing is behind it. */
  readonly far: number | undefined
  readonly low: number
  readonly high: number
}

const EVENT_COLUMNS = `id, source, type, time, tenant, subject, attributes, arrived, lanes, length(body), purged_hash,
  (select count(*) from receipts where receipts.event = events.seq)`

/** Counted up to here: figures are asked for often, and a million lanes take a while. */
const LANES_COUNTED = 10_000
const LANES_OF_FLOW = `select count(*) from (select 1 from lanes where flow = ? and due is not null limit ${LANES_COUNTED})`
const LIVE_OF_FLOW = `select count(*) from lanes indexed by lanes_live where flow = ? and lease is not null and lease > ?`
const NEXT_WAITING = `select flow from lanes indexed by lanes_line where flow > ? and due is not null order by flow limit 1`
/** Letters have long rows: none of them is read for this. */
const NEXT_DEAD = `select flow from letters indexed by letters_flow where flow > ? order by flow limit 1`
const NEXT_REASON = `select reason, since from marks indexed by marks_since where reason > ? order by reason, since limit 1`
/** Which are shown is known before the state of any is read. */
const LIMITS = `select l.name, l.state ->> 'epoch', l.state ->> 'pausedUntil',
    max(l.state ->> 'last', coalesce(l.state ->> 'promised', 0)), l.state ->> 'stretch', l.state ->> 'stretchedAt'
  from (select name from limits order by idle_at desc limit 1000) shown join limits l on l.name = shown.name`
/** A look for each line: the smallest of all would be a look at every lane. */
const LINES: readonly Line[] = [0, 1, 2]
/** In the order in which they are asked for. */
const IDS_OF = `select e.id from json_each(?) s cross join events e on e.seq = s.value order by s.key`
const BYTES = `select (p.page_count - f.freelist_count) * s.page_size
  from pragma_page_count p, pragma_freelist_count f, pragma_page_size s`

interface RecordsOf {
  readonly events: SqliteEvents
  readonly lanes: Pick<SqliteLanes, 'firstDue'>
  readonly laneRuns: LaneRuns | undefined
  /** Its name. */
  readonly store: string
}

export class SqliteRecords implements RecordQueries {
  readonly #sql: Statements
  readonly #of: RecordsOf
  readonly #kinds: { readonly [K in RecordKind]: Kept<K> }

  constructor(sql: Statements, of: RecordsOf) {
    this.#sql = sql
    this.#of = of
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
        read: eventRecord,
        find: placeOf('select seq from events where id = ?'),
      },
      lanes: {
        table: 'lanes',
        columns: LANE_COLUMNS,
        order: 'row',
        where: { flow: 'flow = ?', tenant: 'tenant = ?', lane: 'id = ?' },
        read: laneOf,
        find: placeOf('select row from lanes where id = ?'),
      },
      runs: {
        table: 'runs',
        columns: RUN_COLUMNS,
        order: 'n',
        where: { ...OF_A_LANE, from: 'ended >= ?', to: 'ended < ?' },
        ...(of.laneRuns !== undefined && { ofLane: listedRuns(of.laneRuns) }),
        read: (row) => this.#run(runOf(row, of.store)),
        find: (id) => (id.startsWith(`${of.store}-`) ? runNumber(id) : undefined),
      },
      dead: {
        table: 'letters',
        columns: LETTER_COLUMNS,
        order: 'ord',
        where: { ...OF_A_LANE, from: 'at >= ?', to: 'at < ?' },
        read: (row) => this.#letter(letterOf(row)),
        find: placeOf('select ord from letters where id = ?'),
      },
      marks: {
        table: 'marks',
        columns: MARK_COLUMNS,
        order: 'id',
        // By their order, not by the index of flows, which has them in another one: all of a flow would be read and sorted.
        where: { flow: '+flow = ?', from: 'since >= ?', to: 'since < ?' },
        read: (row) => this.#mark(markOf(row)),
        find: Number,
      },
      audit: {
        table: 'audit',
        columns: 'id, at, who, what, chain',
        order: 'id',
        where: { from: 'at >= ?', to: 'at < ?' },
        read: auditOf,
        find: Number,
      },
    }
  }

  find<K extends RecordKind>({ kind, filter, cursor, n, oldestFirst = false }: FindCall<K>): Page<K> {
    const kept: Kept<K> = this.#kinds[kind]
    const stretch = this.#stretch(kept, cursor, oldestFirst)
    const asked = this.#asked(kept, filter, stretch)
    if (asked === undefined) return { items: [], next: undefined }
    const rows = this.#sql.all(
      `select ${kept.order}, ${kept.columns} from ${kept.table} where ${stretch.where} ${asked.where}
       order by ${kept.order} ${oldestFirst ? 'asc' : 'desc'} limit ?`,
      ...stretch.bounds,
      ...asked.values,
      n + 1,
    )
    const shown = rows.slice(0, n)
    const stopped = rows.length > n ? number(shown.at(-1)?.[0] ?? 0) : stretch.far
    return { items: shown.map((row) => kept.read(row.slice(1))), next: stopped?.toString() }
  }

  count({ kind, filter, cursor, atMost }: CountCall): { readonly count: number; readonly next: string | undefined } {
    const kept = this.#kinds[kind]
    const stretch = this.#stretch(kept, cursor, false)
    const asked = this.#asked(kept, filter, stretch)
    if (asked === undefined) return { count: 0, next: undefined }
    const [found, last] =
      this.#sql.get(
        `select count(*), min(place) from (select ${kept.order} as place from ${kept.table}
         where ${stretch.where} ${asked.where} order by ${kept.order} desc limit ?)`,
        ...stretch.bounds,
        ...asked.values,
        atMost,
      ) ?? []
    const count = number(found)
    // Just as many as were asked for: whether there is another one behind is for the next count to say.
    return { count, next: (count < atMost ? stretch.far : number(last ?? 0))?.toString() }
  }

  get<K extends RecordKind>(kind: K, id: string): Records[K] | undefined {
    const kept: Kept<K> = this.#kinds[kind]
    const place = kept.find(id)
    if (place === undefined || Number.isNaN(place)) return undefined
    const row = this.#sql.get(`select ${kept.columns} from ${kept.table} where ${kept.order} = ?`, place)
    if (row === undefined) return undefined
    const record = kept.read(row)
    if (kind !== 'events') return record
    const event = this.#of.events.byId(id)
    if (event === undefined) return record
    return { ...record, body: event.body, request: event.request, receipts: this.#of.events.receipts(event.seq) }
  }

  stats(now: Millis): TableStats {
    return {
      flows: this.#flows().map((flow) => this.#flow(flow, now)),
      letters: number(this.#sql.get('select count(*) from letters')?.[0]),
      marks: this.#marks(),
      limits: this.#sql.all(LIMITS).map((row) => ({
        name: text(row[0]),
        epoch: number(row[1]),
        pausedUntil: number(row[2]),
        last: number(row[3]),
        stretch: stretchAt({ stretch: number(row[4]), stretchedAt: number(row[5]) }, now),
      })),
      bytes: this.bytes(),
    }
  }

  /** Of the file, without pages that are free to be used again. */
  bytes(): number {
    return number(this.#sql.get(BYTES)?.[0])
  }

  /** One look per flow, not per lane or letter: each step jumps to the next flow in the index. */
  #flows(): readonly string[] {
    const flows = new Set(this.#sql.all('select flow from pauses').map(([flow]) => text(flow)))
    for (const next of [NEXT_WAITING, NEXT_DEAD]) {
      for (let at = this.#sql.get(next, ''); at !== undefined; at = this.#sql.get(next, text(at[0]))) {
        flows.add(text(at[0]))
      }
    }
    return [...flows]
  }

  #marks(): TableStats['marks'] {
    const found: TableStats['marks'][number][] = []
    for (let at = this.#sql.get(NEXT_REASON, ''); at !== undefined; at = this.#sql.get(NEXT_REASON, text(at[0]))) {
      const reason = text(at[0]) as MarkRow['reason']
      const count = number(this.#sql.get('select count(*) from marks where reason = ?', reason)?.[0])
      found.push({ reason, count, oldest: number(at[1]) })
    }
    return found
  }

  #flow(flow: string, now: Millis): TableStats['flows'][number] {
    const pause = this.#sql.get('select reason, by, since from pauses where flow = ?', flow)
    const due = this.#of.lanes.firstDue(flow, LINES)
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

  /** Undefined: this kind of record has nothing of the sort. */
  #asked(
    { where, ofLane }: Pick<Kept<RecordKind>, 'where' | 'ofLane'>,
    filter: Filter,
    stretch: Stretch,
  ): Asked | undefined {
    const given = Object.entries(filter).filter(([, wanted]) => wanted !== undefined)
    const clauses = given.map(([name]) => where[name as keyof Filter])
    if (clauses.includes(undefined)) return undefined
    const all = clauses.map((clause) => `and ${clause}`).join(' ')
    const values = given.map(([, wanted]) => wanted as string | number)
    if (ofLane === undefined || filter.lane === undefined) return { where: all, values }
    const listed = ofLane(filter.lane, stretch)
    return { where: `${all} and ${listed.where}`, values: [...values, ...listed.values] }
  }

  /** The rows behind the cursor that one call may look at. */
  #stretch({ table, order }: Pick<Kept<RecordKind>, 'table' | 'order'>, cursor: string, up: boolean): Stretch {
    const [behind, upTo, way] = up ? ['>', '<=', 'asc'] : ['<', '>=', 'desc']
    const from = cursor === '' ? (up ? -1 : NEVER) : Number(cursor)
    const query = `select ${order} from ${table} where ${order} ${behind} ? order by ${order} ${way} limit 1 offset ?`
    const last = this.#sql.get(query, from, ROWS_PER_PAGE - 1)?.[0]
    const far = last === undefined ? undefined : number(last)
    const [low, high] = up ? [from, far ?? NEVER] : [far ?? -1, from]
    if (far === undefined) return { where: `${order} ${behind} ?`, bounds: [from], far, low, high }
    return { where: `${order} ${behind} ? and ${order} ${upTo} ?`, bounds: [from, far], far, low, high }
  }

  #ids(seqs: readonly number[]): readonly string[] {
    return seqs.length === 0 ? [] : this.#sql.all(IDS_OF, JSON.stringify(seqs)).map(([id]) => text(id))
  }

  #run(row: RunRow): RunRecord {
    return { ...row, events: this.#ids(row.events) }
  }

  #letter(row: LetterRow): LetterRecord {
    const { order: _order, group: _group, places, ...letter } = row
    return { ...letter, events: this.#ids(places.map((place) => place.event)) }
  }

  #mark(row: MarkRow): MarkRecord {
    const { id, flow, reason, error, since, tries } = row
    return { id, flow, reason, error, since, tries, event: this.#ids([row.event])[0] ?? '' }
  }
}

/** A lane's runs are few among all. */
function listedRuns(laneRuns: LaneRuns): (lane: LaneId, stretch: Stretch) => Asked {
  return (lane, { low, high }) => ({
    where: `n in (select run from lane_runs where lane = ? and run between ? and ? union all select value from json_each(?))`,
    values: [lane, low, high, JSON.stringify(laneRuns.inMemory(lane))],
  })
}

const OF_A_LANE = { flow: 'flow = ?', tenant: 'tenant = ?', lane: 'lane = ?' }

function eventRecord(row: Row): EventRecord {
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
  }
}
