// Builds the statements that write the lanes a transaction has changed: new lanes, changed lanes, and, with fewer columns,
// lanes in which only more events wait.
import type { Lane } from '../../model/lane.ts'
import { buildInsert, unnestRows, bindRows, buildUpdate, type RowType } from './columns.ts'
import {
  ADD_LANES,
  BEGIN_LANES,
  toBeginColumns,
  toLaneColumns,
  isRunStart,
  hasSameName,
  isDeadlinePush,
  NAME_LANES,
  toNameColumns,
  PUSH_LANES,
  toPushColumns,
  SET_LANES,
} from './lane-rows.ts'
import type { Statement } from './row-cache.ts'
import type { IndexPosition } from './index-position.ts'

export interface LaneWrite {
  readonly position: IndexPosition
  /** Undefined if the lane is new. */
  readonly before: IndexPosition | undefined
  /** Whether the lane keeps its index position. */
  readonly keepsPosition: boolean
  /** Whether a run of the lane begins and the lane keeps its index position for that reason. */
  readonly beginsRun: boolean
}

type LaneChange = LaneWrite & { readonly before: IndexPosition }

/**
 * `must_be` fails if a lane is not as it was when the transaction decided. A transaction that has locked the lane knows its
 * state; an optimistic append may be wrong, and the server then rejects it.
 */
function buildCheckedUpdate(type: RowType, set: (column: string) => string, constants: readonly string[] = []): string {
  const columns = Object.keys(type.columns).filter((column) => !['id', 'was', 'stays'].includes(column))
  const sets = [...columns.map((column) => `${column} = ${set(column)}`), ...constants]
  return `with changed as (
    update lanes t set ${sets.join(', ')} from ${unnestRows(type, 'v')}
    where t.id = v.id and t.rev = v.was returning 1
  ) select must_be((select count(*) from changed), cardinality($1))`
}

const SET = buildCheckedUpdate(SET_LANES, (column) =>
  column.startsWith('ring') ? `case when v.stays then t.${column} else v.${column} end` : `v.${column}`,
)
const PUSH = buildCheckedUpdate(PUSH_LANES, (column) => `v.${column}`)
const BARE = ['due = v.lease', 'waiting = 0', 'bytes = 0', 'win = null', 'cap = null']
const BEGIN = buildCheckedUpdate(BEGIN_LANES, (column) => `v.${column}`, BARE)
const RENAME = buildUpdate('lanes', NAME_LANES)
/** Another transaction may have inserted the lane meanwhile. Then this insert fails, and the transaction runs again. */
const ADD = buildInsert('lanes', ADD_LANES)

/** `buildLaneWrites` writes lanes in the order of their ids, the order in which every transaction locks. */
export function buildLaneWrites(writes: readonly LaneWrite[]): readonly Statement[] {
  const old = writes.filter((write): write is LaneChange => write.before !== undefined)
  const added = writes.flatMap(({ position, before }) => (before === undefined ? [position] : []))
  const rows = added.map((position) => ({ ...toLaneColumns(position), ...toNameColumns(position.lane) }))
  return [...buildChanges(old), ...bindRows(ADD, ADD_LANES, rows)]
}

/**
 * One statement updates all lanes: with two, the lanes of the second would be locked out of order. Only claimed lanes have a
 * statement of their own, because they are already locked.
 */
function buildChanges(all: readonly LaneChange[]): readonly Statement[] {
  const isBrief = ({ position, before, beginsRun: begins }: LaneChange): boolean =>
    begins && isRunStart(position, before)
  const begun = all.filter(isBrief).map(({ position, before }) => toBeginColumns(position, before))
  const writes = begun.length === 0 ? all : all.filter((write) => !isBrief(write))
  return [...bindRows(BEGIN, BEGIN_LANES, begun), ...buildOtherChanges(writes)]
}

function buildOtherChanges(writes: readonly LaneChange[]): readonly Statement[] {
  if (writes.every(({ position, before, keepsPosition: stays }) => stays && isDeadlinePush(position, before))) {
    const pushes = writes.map(({ position, before }) => toPushColumns(position, before))
    return bindRows(PUSH, PUSH_LANES, pushes)
  }
  const rows = writes.map(({ position, before, keepsPosition: stays }) => ({
    ...toLaneColumns(position),
    was: before.rev,
    stays,
  }))
  const renamed = writes.filter(({ position, before }) => !hasSameName(position.lane, before.lane))
  const names = renamed.map(({ position }) => toNameColumns(position.lane))
  return [...bindRows(SET, SET_LANES, rows), ...bindRows(RENAME, NAME_LANES, names)]
}

export function compareById(one: Lane, other: Lane): number {
  return one.id < other.id ? -1 : 1
}
