// This file stores finished runs, dead letters and unrouted events as rows.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { DeadLetterRow, DeadLetterTable, UnroutedRow, UnroutedTable, RunRow, RunTable } from '../core/tables.ts'
import { isPlainRun, parseRunNumber } from '../core/commit-context.ts'
import type { LaneRunIndex } from './lane-runs.ts'
import {
  DEAD_LETTER_COLUMNS,
  RUN_COLUMNS,
  toDeadLetterRow,
  toRunRow,
  toUnroutedRow,
  UNROUTED_COLUMNS,
} from '../sql/rows.ts'
import { number, sqliteCells, text, type Row, type Statements } from './statements.ts'

const PUT_RUN = `insert or replace into runs (${RUN_COLUMNS})`
const PUT_PLAIN_RUN = 'insert or replace into runs (n, lane, flow, key, started, ended, events)'
const OF_LANE = `select run from (select run from lane_runs where lane = ? and run < ? order by run desc limit ?)
  union select value from json_each(?)`
const RUNS_OF_LANE = `select ${RUN_COLUMNS} from runs where n in (${OF_LANE}) order by n desc limit ?`
const OLDEST_RUNS = `select ${RUN_COLUMNS} from runs where n > ? order by n limit ?`

export class SqliteRuns implements RunTable {
  readonly #sql: Statements
  readonly #name: string
  readonly #laneRuns: LaneRunIndex

  constructor(sql: Statements, name: string, ofLanes: LaneRunIndex) {
    this.#sql = sql
    this.#name = name
    this.#laneRuns = ofLanes
  }

  put(run: RunRow, isFirst: boolean): void {
    const n = parseRunNumber(run.id)
    this.#laneRuns.add(run.lane, n)
    const events = run.events.join(',')
    const before = isFirst ? undefined : this.#sql.get('select started from runs where n = ?', n)?.[0]
    const started = Math.min(run.started, number(before ?? run.started))
    // The schema has defaults for the other columns.
    if (isPlainRun(run)) {
      this.#sql.runBatched(PUT_PLAIN_RUN, [n, run.lane, run.flow, run.key, started, run.ended, events])
      return
    }
    this.#sql.runBatched(PUT_RUN, [
      n,
      run.parent,
      run.lane,
      run.flow,
      run.key,
      run.tenant,
      run.kind,
      run.reason,
      started,
      run.ended,
      run.tries,
      run.lapses,
      events,
      run.attempts.length === 0 ? null : JSON.stringify(run.attempts),
    ])
  }

  findByLane(lane: LaneId, n: number, before: number = NEVER): readonly RunRow[] {
    const late = JSON.stringify(this.#laneRuns.findInMemory(lane).filter((run) => run < before))
    return this.#sql.all(RUNS_OF_LANE, lane, before, n, late, n).map((row) => toRunRow(sqliteCells, row, this.#name))
  }

  remove(id: string): void {
    const n = parseRunNumber(id)
    const lane = this.#sql.get('delete from runs where n = ? returning lane', n)?.[0]
    if (lane !== undefined) this.#laneRuns.remove(text(lane), n)
  }

  findOldest(after: number, n: number): readonly RunRow[] {
    return this.#sql.all(OLDEST_RUNS, after, n).map((row) => toRunRow(sqliteCells, row, this.#name))
  }
}

const PUT_LETTER = `insert or replace into letters (${DEAD_LETTER_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const NEXT_QUEUED = `select ${DEAD_LETTER_COLUMNS} from letters where lane = ? and state = 'queued' order by ord limit 1`
const EXPIRABLE = `select ${DEAD_LETTER_COLUMNS} from letters where at <= ? and state = 'dead' and blocks = 0 order by at limit ?`

export class SqliteDeadLetters implements DeadLetterTable {
  readonly #sql: Statements

  constructor(sql: Statements) {
    this.#sql = sql
  }

  get(id: string): DeadLetterRow | undefined {
    return this.#sql.all(`select ${DEAD_LETTER_COLUMNS} from letters where id = ?`, id).map(toDeadLetter)[0]
  }

  put(deadLetter: DeadLetterRow): void {
    this.#sql.run(
      PUT_LETTER,
      deadLetter.id,
      deadLetter.order,
      deadLetter.lane,
      deadLetter.flow,
      deadLetter.key,
      deadLetter.tenant,
      deadLetter.group,
      deadLetter.parent,
      deadLetter.state,
      deadLetter.reason,
      deadLetter.at,
      deadLetter.tries,
      deadLetter.lapses,
      deadLetter.blocks ? 1 : 0,
      JSON.stringify(deadLetter.placements.map(({ pos, event, size }) => ({ pos, event, size }))),
      JSON.stringify(deadLetter.attempts),
      deadLetter.replay,
    )
  }

  remove(id: string): void {
    this.#sql.run('delete from letters where id = ?', id)
  }

  findByLane(lane: LaneId): readonly DeadLetterRow[] {
    return this.#sql
      .all(`select ${DEAD_LETTER_COLUMNS} from letters where lane = ? order by ord`, lane)
      .map(toDeadLetter)
  }

  findEventSeqs(lane: LaneId): readonly number[] {
    return this.#sql
      .all('select places from letters where lane = ?', lane)
      .flatMap(([placements]) => sqliteCells.placements(placements).map((placement) => placement.event))
  }

  findNextQueued(lane: LaneId): DeadLetterRow | undefined {
    return this.#sql.all(NEXT_QUEUED, lane).map(toDeadLetter)[0]
  }

  findExpirable(before: Millis, n: number): readonly DeadLetterRow[] {
    return this.#sql.all(EXPIRABLE, before, n).map(toDeadLetter)
  }
}

function toDeadLetter(row: Row): DeadLetterRow {
  return toDeadLetterRow(sqliteCells, row)
}

const PUT_UNROUTED = `insert or replace into marks (${UNROUTED_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`
/** These queries jump from flow to flow in the index. Unrouted events that this process cannot place may be many and
    are not read. */
const FIRST_UNROUTED_FLOW = 'select flow from marks indexed by marks_due order by flow limit 1'
const NEXT_UNROUTED_FLOW = 'select flow from marks indexed by marks_due where flow > ? order by flow limit 1'
const DUE_UNROUTED = `select ${UNROUTED_COLUMNS} from marks where flow = ? and reason = ? and due <= ? order by due, id limit ?`

export class SqliteUnrouted implements UnroutedTable {
  readonly #sql: Statements

  constructor(sql: Statements) {
    this.#sql = sql
  }

  get(id: number): UnroutedRow | undefined {
    return this.#sql.all(`select ${UNROUTED_COLUMNS} from marks where id = ?`, id).map(toUnrouted)[0]
  }

  put(entry: UnroutedRow): void {
    const { id, event, flow, reason, error, since, due, tries, token } = entry
    this.#sql.run(PUT_UNROUTED, id, event, flow, reason, error, since, due, tries, token)
  }

  remove(id: number): void {
    this.#sql.run('delete from marks where id = ?', id)
  }

  findDue(...[now, reasons, flows, n]: Parameters<UnroutedTable['findDue']>): readonly UnroutedRow[] {
    const found: UnroutedRow[] = []
    for (
      let at = this.#sql.get(FIRST_UNROUTED_FLOW);
      at !== undefined;
      at = this.#sql.get(NEXT_UNROUTED_FLOW, text(at[0]))
    ) {
      const flow = text(at[0])
      if (flow !== '' && !flows.includes(flow)) continue
      for (const reason of reasons) found.push(...this.#sql.all(DUE_UNROUTED, flow, reason, now, n).map(toUnrouted))
    }
    return found.toSorted((one, other) => one.due - other.due || one.id - other.id).slice(0, n)
  }

  findByEvent(event: number): readonly UnroutedRow[] {
    return this.#sql.all(`select ${UNROUTED_COLUMNS} from marks where event = ? order by id`, event).map(toUnrouted)
  }
}

function toUnrouted(row: Row): UnroutedRow {
  return toUnroutedRow(sqliteCells, row)
}
