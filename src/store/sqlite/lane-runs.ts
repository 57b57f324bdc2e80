// `LaneRunIndex` finds the finished runs of a lane. Memory holds the newest runs; a table that is written late holds
// the others.
import type { LaneId } from '../../model/identity.ts'
import { WriteBehindIndex } from './write-behind-index.ts'
import type { Statements } from './statements.ts'

/** Small, because the `work` view reads the runs that are not written yet. */
const ROUND_SIZE = 8_192
const HASH_LENGTH = 22

const INSERT = 'insert or ignore into lane_runs (lane, run)'

/** Only lanes whose id is a hash. Ids that begin with the time sort to the end of the index and are written at once. */
const UNWRITTEN = `select n, lane from runs where n >= ? and length(lane) = ${HASH_LENGTH} order by n`

export class LaneRunIndex {
  readonly #sql: Statements
  readonly #index: WriteBehindIndex<LaneId>

  constructor(sql: Statements, readOnly: boolean) {
    this.#sql = sql
    this.#index = new WriteBehindIndex(sql, {
      insert: INSERT,
      keyOf: (lane) => lane,
      round: ROUND_SIZE,
      since: 'listed',
      unwritten: readOnly ? undefined : UNWRITTEN,
    })
  }

  /** `findInMemory` returns the runs that may be missing from the table. */
  findInMemory(lane: LaneId): readonly number[] {
    return this.#index.find(lane)
  }

  add(lane: LaneId, run: number): void {
    if (lane.length === HASH_LENGTH) return this.#index.add(lane, run)
    this.#sql.runBatched(INSERT, [lane, run])
    return this.#index.advance(run)
  }

  remove(lane: LaneId, run: number): void {
    this.#index.remove(lane, run)
    this.#sql.run('delete from lane_runs where lane = ? and run = ?', lane, run)
  }

  afterTransaction(how: 'committed' | 'rolled-back'): void {
    this.#index.afterTransaction(how)
  }
}
