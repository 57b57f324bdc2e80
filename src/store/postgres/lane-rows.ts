// Converts lanes to rows and back.
import { NEVER } from '../../clock.ts'
import { createLane, type Lane, type LaneHealth } from '../../model/lane.ts'
import { getKeepUntil, getLeaseEnd, parseRareFields, serializeRareFields } from '../sql/lane-columns.ts'
import { defineRowType, type ColumnTypes, type RowType, type RowValues } from './columns.ts'
import { POSITION_COLUMNS, toPositionColumns, type IndexPosition } from './index-position.ts'
import { bytes, millisOrNever, millisOrNull, number, text, escapeText, type Row } from './values.ts'

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
const POSITION_COLUMN_NAMES: readonly string[] = Object.keys(POSITION_COLUMNS)
/** The columns of a lane, preceded by its index position. */
export const POSITIONED_LANE_COLUMNS: string = [...POSITION_COLUMN_NAMES, ...LANE_COLUMNS].join(', ')
export const POSITIONED_LANE_WIDTH: number = POSITION_COLUMN_NAMES.length + LANE_COLUMNS.length
/** The columns that a transition may change. */
const CHANGED: ColumnTypes = {
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
  ...POSITION_COLUMNS,
  lease: 'bigint',
  ring_lease: 'bigint',
  keep_until: 'bigint',
}
/** The columns of a lane's names. A deleted lane may return with other names: its key and group are those of its newest event. */
const NAMED: ColumnTypes = { id: 'text', flow: 'text', key: 'bytea', tenant: 'text', grp: 'text' }
/** `was` is the revision on which the change was decided; `stays` says whether the lane keeps its index position. */
export const SET_LANES: RowType = defineRowType('set_lanes', { ...CHANGED, was: 'bigint', stays: 'boolean' })
/** The columns that an event changes if it only joins others. No index has these columns. */
export const PUSH_LANES: RowType = defineRowType('push_lanes', {
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
/** The columns that differ between lanes if claims take all waiting events. No index has these columns either. */
export const BEGIN_LANES: RowType = defineRowType('begin_lanes', {
  id: 'text',
  lease: 'bigint',
  ticket: 'bigint',
  rest: 'text',
  rev: 'bigint',
  was: 'bigint',
})
export const NAME_LANES: RowType = defineRowType('name_lanes', NAMED)
export const ADD_LANES: RowType = defineRowType('add_lanes', { ...CHANGED, ...NAMED })

export function hasSameName(lane: Lane, stored: Lane | undefined): boolean {
  return (
    stored?.key === lane.key &&
    stored.flow === lane.flow &&
    stored.tenant === lane.tenant &&
    stored.group === lane.group
  )
}

const PUSHED_FIELDS: readonly (keyof Lane)[] = ['tail', 'waiting', 'bytes', 'window', 'due', 'ticket']
const ANY_LANE = createLane({ id: '', flow: '', key: '', tenant: '', group: '' })
const UNPUSHED_FIELDS = (Object.keys(ANY_LANE) as (keyof Lane)[]).filter((name) => !PUSHED_FIELDS.includes(name))

/** `isDeadlinePush` returns, for a lane that keeps its position, whether only the pushed columns change. */
export function isDeadlinePush({ lane, inlinePlacement: inRow }: IndexPosition, before: IndexPosition): boolean {
  const others = before.lane.waiting > 0 && lane.waiting > 0 && inRow === before.inlinePlacement
  return others && UNPUSHED_FIELDS.every((name) => lane[name] === before.lane[name])
}

export function toPushColumns({ lane, rev }: IndexPosition, before: IndexPosition): RowValues {
  return {
    id: lane.id,
    tail: lane.tail,
    waiting: lane.waiting,
    bytes: lane.bytes,
    win: millisOrNull(lane.window),
    due: millisOrNull(lane.due),
    ticket: lane.ticket,
    rev,
    was: before.rev,
  }
}

/**
 * `isRunStart` returns, for a lane that keeps its position as its run begins, whether the run takes all waiting events and no
 * other column changes.
 */
export function isRunStart({ lane, inlinePlacement: inRow }: IndexPosition, before: IndexPosition): boolean {
  const isBare = lane.waiting === 0 && lane.bytes === 0 && lane.window === NEVER && lane.cap === NEVER
  const isSame = inRow === before.inlinePlacement && lane.tail === before.lane.tail && lane.row === before.lane.row
  return isBare && isSame && lane.due === getLeaseEnd(lane) && hasSameName(lane, before.lane)
}

export function toBeginColumns({ lane, rev }: IndexPosition, before: IndexPosition): RowValues {
  return {
    id: lane.id,
    lease: getLeaseEnd(lane),
    ticket: lane.ticket,
    rest: serializeRareFields(lane),
    rev,
    was: before.rev,
  }
}

export function toNameColumns(lane: Lane): RowValues {
  return {
    id: lane.id,
    flow: escapeText(lane.flow),
    key: Buffer.from(lane.key),
    tenant: escapeText(lane.tenant),
    grp: escapeText(lane.group),
  }
}

export function toLaneColumns(position: IndexPosition): RowValues {
  const { lane } = position
  const lease = millisOrNull(getLeaseEnd(lane))
  return {
    id: lane.id,
    row: lane.row,
    tail: lane.tail,
    waiting: lane.waiting,
    bytes: lane.bytes,
    win: millisOrNull(lane.window),
    cap: millisOrNull(lane.cap),
    due: millisOrNull(lane.due),
    ticket: lane.ticket,
    line: lane.line,
    rest: serializeRareFields(lane),
    ...toPositionColumns(position),
    lease,
    ring_lease: lease,
    keep_until: millisOrNull(getKeepUntil(lane)),
  }
}

/** `from` is the index of the lane's first column in the row. */
export function toLane(row: Row, from = 0): Lane {
  const name = {
    id: text(row[from + 1]),
    flow: text(row[from + 2]),
    key: Buffer.from(bytes(row[from + 3])).toString(),
    tenant: text(row[from + 4]),
    group: text(row[from + 5]),
  }
  const rest = row[from + 14]
  return Object.assign(
    createLane(name),
    {
      row: number(row[from]),
      tail: number(row[from + 6]),
      waiting: number(row[from + 7]),
      bytes: number(row[from + 8]),
      window: millisOrNever(row[from + 9]),
      cap: millisOrNever(row[from + 10]),
      due: millisOrNever(row[from + 11]),
      ticket: number(row[from + 12]),
      line: number(row[from + 13]) as LaneHealth,
    },
    typeof rest === 'string' ? parseRareFields(rest) : undefined,
  )
}

/** `toPositionedLane` reads a lane from a row that begins with its index position. */
export function toPositionedLane(row: Row): Lane {
  return toLane(row, POSITION_COLUMN_NAMES.length)
}
