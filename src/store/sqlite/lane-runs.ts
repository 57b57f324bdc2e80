// Which finished runs a lane has had: of the newest memory knows it, of the others a table that is written late.
import type { LaneId } from '../../model/identity.ts'
import { LateIndex } from './late-index.ts'
import type { Statements } from './statements.ts'

/** Few: the view of all work looks through the last ones. */
const ROUND = 8_192
const HASH_LENGTH = 22

const INSERT = 'insert or ignore into lane_runs (lane, run)'

/** Those whose names begin with the time come at the end of the index: that is written as they come. */
const UNWRITTEN = `select n, lane from runs where n >= ? and length(lane) = ${HASH_LENGTH} order by n`

export class LaneRuns {
  readonly #sql: Statements
  readonly #index: LateIndex<LaneId>

  constructor(sql: Statements, readOnly: boolean) {
    this.#sql = sql
    this.#index = new LateIndex(sql, {
      insert: INSERT,
      keyOf: (lane) => lane,
      round: ROUND,
      since: 'listed',
      unwritten: readOnly ? undefined : UNWRITTEN,
    })
  }

  /** Those that may not be in the table. */
  inMemory(lane: LaneId): readonly number[] {
    return this.#index.of(lane)
  }

  add(lane: LaneId, run: number): void {
    if (lane.length === HASH_LENGTH) return this.#index.add(lane, run)
    this.#sql.behind(INSERT, [lane, run])
    return this.#index.pass(run)
  }

  remove(lane: LaneId, run: number): void {
    this.#index.remove(lane, run)
    this.#sql.run('delete from lane_runs where lane = ? and run = ?', lane, run)
  }

  letGo(how: 'committed' | 'rolled-back'): void {
    this.#index.letGo(how)
  }
}
