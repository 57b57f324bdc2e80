// How a lane is written as a row and read from it.
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { emptyLane, type Lane, type Line } from '../../model/lane.ts'
import { keptUntil, leaseEnd, readRest, restOf } from '../rules/lane-rest.ts'
import { rowType, type Columns, type RowType, type WrittenRow } from './columns.ts'
import { STANDING, standingColumns, type Standing } from './standings.ts'
import { bytes, moment, momentOrNull, number, text, written, type Row } from './values.ts'

export const LANE_COLUMNS = [
  'row',
  'id',
  'flow',
  'key',
  'tenant',
  'grp',
  'tail',
  'waiting',
  'bytes',
  'win',
  'cap',
  'due',
  'ticket',
  'line',
  'rest',
] as const
const STANDING_NAMES: readonly string[] = Object.keys(STANDING)
/** With where it stands before it. */
export const STANDING_COLUMNS: string = [...STANDING_NAMES, ...LANE_COLUMNS].join(', ')
export const STANDING_WIDTH: number = STANDING_NAMES.length + LANE_COLUMNS.length
/** What a transition may change. */
const CHANGED: Columns = {
  id: 'text',
  row: 'bigint',
  tail: 'bigint',
  waiting: 'int',
  bytes: 'bigint',
  win: 'bigint',
  cap: 'bigint',
  due: 'bigint',
  ticket: 'bigint',
  line: 'smallint',
  rest: 'text',
  ...STANDING,
  lease: 'bigint',
  ring_lease: 'bigint',
  keep_until: 'bigint',
}
/** One that went and came back may have another name: a key and its group are as its newest event says. */
const NAMED: Columns = { id: 'text', flow: 'text', key: 'bytea', tenant: 'text', grp: 'text' }
/** `was`: the write that it was decided on. `stays`: where it stands. */
export const SET_LANES: RowType = rowType('set_lanes', { ...CHANGED, was: 'bigint', stays: 'boolean' })
/** What an event changes that only joins others, and that no index has to know. */
export const PUSH_LANES: RowType = rowType('push_lanes', {
  id: 'text',
  tail: 'bigint',
  waiting: 'int',
  bytes: 'bigint',
  win: 'bigint',
  due: 'bigint',
  ticket: 'bigint',
  rev: 'bigint',
  was: 'bigint',
})
/** What differs from lane to lane where claims take all that waits, likewise. */
export const BEGIN_LANES: RowType = rowType('begin_lanes', {
  id: 'text',
  lease: 'bigint',
  ticket: 'bigint',
  rest: 'text',
  rev: 'bigint',
  was: 'bigint',
})
export const NAME_LANES: RowType = rowType('name_lanes', NAMED)
export const ADD_LANES: RowType = rowType('add_lanes', { ...CHANGED, ...NAMED })

export function isCalled(lane: Lane, stored: Lane | undefined): boolean {
  return (
    stored?.key === lane.key &&
    stored.flow === lane.flow &&
    stored.tenant === lane.tenant &&
    stored.group === lane.group
  )
}

type Pushed = 'tail' | 'waiting' | 'bytes' | 'window' | 'due' | 'ticket'
const NOT_PUSHED: Readonly<Record<Exclude<keyof Lane, Pushed>, true>> = {
  row: true,
  id: true,
  flow: true,
  key: true,
  tenant: true,
  group: true,
  cap: true,
  left: true,
  replays: true,
  replayDue: true,
  passed: true,
  letters: true,
  letterDue: true,
  blocks: true,
  hold: true,
  ended: true,
  keepUntil: true,
  run: true,
  line: true,
}
const SAME = Object.keys(NOT_PUSHED) as readonly (keyof typeof NOT_PUSHED)[]

/** Of one that is left where it stands: whether no other column changes. */
export function isPushed({ lane, inRow }: Standing, before: Standing): boolean {
  const others = before.lane.waiting > 0 && lane.waiting > 0 && inRow === before.inRow
  return others && SAME.every((name) => lane[name] === before.lane[name])
}

export function pushOf({ lane, rev }: Standing, before: Standing): WrittenRow {
  return {
    id: lane.id,
    tail: lane.tail,
    waiting: lane.waiting,
    bytes: lane.bytes,
    win: momentOrNull(lane.window),
    due: momentOrNull(lane.due),
    ticket: lane.ticket,
    rev,
    was: before.rev,
  }
}

/** Of one that is left where it stands as its run begins: whether nothing is left in it, and no other column changes. */
export function isBegun({ lane, inRow }: Standing, before: Standing): boolean {
  const isBare = lane.waiting === 0 && lane.bytes === 0 && lane.window === NEVER && lane.cap === NEVER
  const isSame = inRow === before.inRow && lane.tail === before.lane.tail && lane.row === before.lane.row
  return isBare && isSame && lane.due === leaseEnd(lane) && isCalled(lane, before.lane)
}

export function beginOf({ lane, rev }: Standing, before: Standing): WrittenRow {
  return {
    id: lane.id,
    lease: leaseEnd(lane),
    ticket: lane.ticket,
    rest: restOf(lane),
    rev,
    was: before.rev,
  }
}

export function nameOf(lane: Lane): WrittenRow {
  return {
    id: lane.id,
    flow: written(lane.flow),
    key: Buffer.from(lane.key),
    tenant: written(lane.tenant),
    grp: written(lane.group),
  }
}

export function changesOf(standing: Standing): WrittenRow {
  const { lane } = standing
  const lease = momentOrNull(leaseEnd(lane))
  return {
    id: lane.id,
    row: lane.row,
    tail: lane.tail,
    waiting: lane.waiting,
    bytes: lane.bytes,
    win: momentOrNull(lane.window),
    cap: momentOrNull(lane.cap),
    due: momentOrNull(lane.due),
    ticket: lane.ticket,
    line: lane.line,
    rest: restOf(lane),
    ...standingColumns(standing),
    lease,
    ring_lease: lease,
    keep_until: momentOrNull(keptUntil(lane)),
  }
}

/** `from`: the first of its columns. */
export function laneOf(row: Row, from = 0): Lane {
  const name = {
    id: text(row[from + 1]),
    flow: text(row[from + 2]),
    key: Buffer.from(bytes(row[from + 3])).toString(),
    tenant: text(row[from + 4]),
    group: text(row[from + 5]),
  }
  const rest = row[from + 14]
  return Object.assign(
    emptyLane(name),
    {
      row: number(row[from]),
      tail: number(row[from + 6]),
      waiting: number(row[from + 7]),
      bytes: number(row[from + 8]),
      window: moment(row[from + 9]),
      cap: moment(row[from + 10]),
      due: moment(row[from + 11]),
      ticket: number(row[from + 12]),
      line: number(row[from + 13]) as Line,
    },
    typeof rest === 'string' ? readRest(rest) : undefined,
  )
}

/** Of a row that says where it stands: only its name. */
export function laneIdIn(row: Row): LaneId {
  return text(row[STANDING_NAMES.length + 1])
}

/** Of a row that says where it stands. */
export function standingLaneOf(row: Row): Lane {
  return laneOf(row, STANDING_NAMES.length)
}
