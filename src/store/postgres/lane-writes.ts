// How the lanes that a transaction has changed are written: those that are new, those that are not what they were, and, with
// fewer columns, those in which only more waits.
import type { Lane } from '../../model/lane.ts'
import { insertInto, rowsOf, withRows, updateOf, type RowType } from './columns.ts'
import {
  ADD_LANES,
  BEGIN_LANES,
  beginOf,
  changesOf,
  isBegun,
  isCalled,
  isPushed,
  NAME_LANES,
  nameOf,
  PUSH_LANES,
  pushOf,
  SET_LANES,
} from './lane-rows.ts'
import type { Statement } from './part.ts'
import type { Standing } from './standings.ts'

export interface LaneWrite {
  readonly standing: Standing
  /** Undefined: it is new. */
  readonly before: Standing | undefined
  /** Whether it is left where it stands. */
  readonly stays: boolean
  /** Whether a run of it begins, and it is left there for that. */
  readonly begins: boolean
}

type LaneChange = LaneWrite & { readonly before: Standing }

/** Whoever has them locked knows how they are; who guesses is refused where one is not as it was believed to be. */
function changed(type: RowType, set: (column: string) => string, constants: readonly string[] = []): string {
  const columns = Object.keys(type.columns).filter((column) => !['id', 'was', 'stays'].includes(column))
  const sets = [...columns.map((column) => `${column} = ${set(column)}`), ...constants]
  return `with changed as (
    update lanes t set ${sets.join(', ')} from ${rowsOf(type, 'v')}
    where t.id = v.id and t.rev = v.was returning 1
  ) select must_be((select count(*) from changed), cardinality($1))`
}

const SET = changed(SET_LANES, (column) =>
  column.startsWith('ring') ? `case when v.stays then t.${column} else v.${column} end` : `v.${column}`,
)
const PUSH = changed(PUSH_LANES, (column) => `v.${column}`)
const BARE = ['due = v.lease', 'waiting = 0', 'bytes = 0', 'win = null', 'cap = null']
const BEGIN = changed(BEGIN_LANES, (column) => `v.${column}`, BARE)
const RENAME = updateOf('lanes', NAME_LANES)
/** Somebody else may have made the lane meanwhile: then this fails, and the transaction begins anew. */
const ADD = insertInto('lanes', ADD_LANES)

/** In the order of their ids, in which all lock. */
export function laneWrites(writes: readonly LaneWrite[]): readonly Statement[] {
  const old = writes.filter((write): write is LaneChange => write.before !== undefined)
  const added = writes.flatMap(({ standing, before }) => (before === undefined ? [standing] : []))
  const rows = added.map((standing) => ({ ...changesOf(standing), ...nameOf(standing.lane) }))
  return [...changes(old), ...withRows(ADD, ADD_LANES, rows)]
}

/**
 * With one statement for all: with two, those of the second would be locked out of the order. Only what is claimed has one of its
 * own, for it is locked already.
 */
function changes(all: readonly LaneChange[]): readonly Statement[] {
  const isBrief = ({ standing, before, begins }: LaneChange): boolean => begins && isBegun(standing, before)
  const begun = all.filter(isBrief).map(({ standing, before }) => beginOf(standing, before))
  const writes = begun.length === 0 ? all : all.filter((write) => !isBrief(write))
  return [...withRows(BEGIN, BEGIN_LANES, begun), ...others(writes)]
}

function others(writes: readonly LaneChange[]): readonly Statement[] {
  if (writes.every(({ standing, before, stays }) => stays && isPushed(standing, before))) {
    const pushes = writes.map(({ standing, before }) => pushOf(standing, before))
    return withRows(PUSH, PUSH_LANES, pushes)
  }
  const rows = writes.map(({ standing, before, stays }) => ({ ...changesOf(standing), was: before.rev, stays }))
  const renamed = writes.filter(({ standing, before }) => !isCalled(standing.lane, before.lane))
  const names = renamed.map(({ standing }) => nameOf(standing.lane))
  return [...withRows(SET, SET_LANES, rows), ...withRows(RENAME, NAME_LANES, names)]
}

export function byId(one: Lane, other: Lane): number {
  return one.id < other.id ? -1 : 1
}
