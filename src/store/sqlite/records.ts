// `SqliteRecords` searches records and computes stats.
import { NEVER, type Millis } from '../../clock.ts'
import type { CountCall, FindCall, RecordKind, RecordTypes } from '../contract/index.ts'
import type { LaneHealth } from '../../model/lane.ts'
import { computeStretch } from '../../model/limit.ts'
import type { PauseRow, RecordCount, RecordPage, RecordQueries, TableStats, UnroutedRow } from '../core/tables.ts'
import { RecordSearch, type SqlDialect, type SqlSearch } from '../sql/record-search.ts'
import type { LaneRunIndex } from './lane-runs.ts'
import { LANE_COLUMNS, toLane, type SqliteLanes } from './lanes.ts'
import type { SqlitePlacements } from './placements.ts'
import { number, sqliteCells, text, type Cell, type Row, type Statements } from './statements.ts'

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
const ALL_HEALTHS: readonly LaneHealth[] = [0, 1, 2]
const BYTES = `select (p.page_count - f.freelist_count) * s.page_size
  from pragma_page_count p, pragma_freelist_count f, pragma_page_size s`

/** One lane has few of all runs, so the index of runs by lane finds them. The index is written late. */
const RUN_OF_LANE = `n in (select run from lane_runs where lane = ? and run between ? and ?
  union all select value from json_each(?))`

const SUBJECT = `subject = ? and subject <> ''`
/** The lanes that an event of the subject entered have few of all dead letters. */
const LANES_OF_SUBJECT = `select lane.value from events, json_each('["' || replace(lanes, ',', '","') || '"]') lane where ${SUBJECT}`
const SUBJECT_OF_DEAD_LETTER = `+lane in (${LANES_OF_SUBJECT}) and exists (select 1 from json_each(places) place
  join events on seq = place.value ->> 'event' where ${SUBJECT})`

function createDialect({ store, laneRuns, lanes, placements }: SqliteRecordsDependencies): SqlDialect {
  return {
    cells: sqliteCells,
    store,
    lanes: { columns: LANE_COLUMNS, read: (row) => toLane(row as Row) },
    sizeOfEvent: 'length(body)',
    unroutedOfEvent: `(select json_group_array(json_array(flow, reason, error)) from marks where marks.event = events.seq)`,
    where: {
      withoutSource: 'instr(source, ?) <> 1',
      laneOfEvent: `instr(',' || lanes || ',', ',' || ? || ',') > 0`,
      amongEvents: 'seq in (select value from json_each(?))',
      // The `+` keeps SQLite from using the index on the flow, which has another order: it would read and sort all
      // records of a flow.
      flowOfUnrouted: '+flow = ?',
      subjectOfEvent: SUBJECT,
      subjectOfDeadLetter: SUBJECT_OF_DEAD_LETTER,
      subjectOfUnrouted: `event in (select seq from events where ${SUBJECT})`,
    },
    bindSeqs: (seqs) => JSON.stringify(seqs),
    // oxlint-disable-next-line require-yield -- the placements are in memory, or in a row that is read at once
    *findPlacements({ id }, rank, n) {
      // With the lane, its placements are read.
      const lane = lanes.get(id)
      return lane === undefined ? [] : placements.findFirst(lane, rank, n)
    },
    selectEventIds: (seqs) => ({
      sql: 'select seq, id from events where seq in (select value from json_each(?))',
      values: [JSON.stringify(seqs)],
    }),
    ...(laneRuns !== undefined && {
      whereRunOfLane: (lane, { low, high }) => ({
        where: RUN_OF_LANE,
        values: [lane, low, high, JSON.stringify(laneRuns.findInMemory(lane))],
      }),
    }),
  }
}

interface SqliteRecordsDependencies {
  readonly lanes: Pick<SqliteLanes, 'findFirstDue' | 'get'>
  readonly placements: Pick<SqlitePlacements, 'findFirst'>
  /** Undefined for a read-only store, whose memory does not follow the writes. */
  readonly laneRuns: LaneRunIndex | undefined
  /** The name of the store. */
  readonly store: string
}

export class SqliteRecords implements RecordQueries {
  readonly #sql: Statements
  readonly #lanes: SqliteRecordsDependencies['lanes']
  readonly #search: RecordSearch

  constructor(sql: Statements, dependencies: SqliteRecordsDependencies) {
    this.#sql = sql
    this.#lanes = dependencies.lanes
    this.#search = new RecordSearch(createDialect(dependencies))
  }

  find<K extends RecordKind>(call: FindCall<K>): RecordPage<K> {
    return this.#run(this.#search.find(call))
  }

  count(call: CountCall): RecordCount {
    return this.#run(this.#search.count(call))
  }

  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined {
    return this.#run(this.#search.get(kind, id))
  }

  #run<T>(search: SqlSearch<T>): T {
    let step = search.next([])
    while (step.done !== true) {
      const { sql, values, limit } = step.value
      step = search.next(this.#sql.all(sql, ...([...values, ...(limit === undefined ? [] : [limit])] as Cell[])))
    }
    return step.value
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
    const due = this.#lanes.findFirstDue(flow, ALL_HEALTHS)
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
}
