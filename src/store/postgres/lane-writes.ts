// Builds the statements that write the lanes a transaction has changed.
import type { Lane } from '../../model/lane.ts'
import type { WaitingPlacement } from '../core/tables.ts'
import { buildInsert, bindRows, buildUpdate, type RowValues } from './columns.ts'
import { ADD_LANES, toLaneColumns, hasSameName, NAME_LANES, toNameColumns, SET_LANES } from './lane-rows.ts'
import type { Statement } from './row-cache.ts'

export interface LaneWrite {
  readonly lane: Lane
  /** The placement to keep in the lane's row. */
  readonly inlinePlacement: WaitingPlacement | undefined
  /** The lane as the server has it; undefined if the lane is new. */
  readonly before: Lane | undefined
}

const SET = buildUpdate('lanes', SET_LANES)
const RENAME = buildUpdate('lanes', NAME_LANES)
/** Another transaction may have inserted the lane meanwhile. Then this insert fails, and the transaction runs again. */
const ADD = buildInsert('lanes', ADD_LANES)

/**
 * `buildLaneWrites` writes lanes in the order of their ids, the order in which every transaction locks. One statement updates all of
 * them: with two, the lanes of the second would be locked out of order.
 */
export function buildLaneWrites(writes: readonly LaneWrite[]): readonly Statement[] {
  const changed: RowValues[] = []
  const renamed: RowValues[] = []
  const added: RowValues[] = []
  for (const { lane, inlinePlacement, before } of writes.toSorted((one, other) => compareById(one.lane, other.lane))) {
    const row = toLaneColumns(lane, inlinePlacement)
    if (before === undefined) added.push({ ...row, ...toNameColumns(lane) })
    else changed.push(row)
    if (before !== undefined && !hasSameName(lane, before)) renamed.push(toNameColumns(lane))
  }
  return [
    ...bindRows(SET, SET_LANES, changed),
    ...bindRows(RENAME, NAME_LANES, renamed),
    ...bindRows(ADD, ADD_LANES, added),
  ]
}

function compareById(one: Lane, other: Lane): number {
  return one.id < other.id ? -1 : 1
}
