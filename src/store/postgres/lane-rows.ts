// How a lane is written as a row and read from it.
import { emptyLane, type Lane, type Line } from '../../model/lane.ts'
import { keptUntil, leaseEnd, readRest, restOf } from '../rules/lane-rest.ts'
import type { Columns, WrittenRow } from './columns.ts'
import { STANDING, standingColumns, type Standing } from './standings.ts'
import { bytes, hex, moment, momentOrNull, number, text, written, type Row } from './values.ts'

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
/** With where it stands. */
export const STANDING_COLUMNS: string = [...LANE_COLUMNS, ...Object.keys(STANDING)].join(', ')
/** What a transition may change. */
export const CHANGED: Columns = {
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
  keep_until: 'bigint',
}
/** One that went and came back may have another name: a key and its group are as its newest event says. */
export const NAMED: Columns = { id: 'text', flow: 'text', key: 'bytea', tenant: 'text', grp: 'text' }
export const MADE: Columns = { ...CHANGED, ...NAMED }

export function isCalled(lane: Lane, stored: Lane | undefined): boolean {
  return (
    stored?.key === lane.key &&
    stored.flow === lane.flow &&
    stored.tenant === lane.tenant &&
    stored.group === lane.group
  )
}

export function nameOf(lane: Lane): WrittenRow {
  return {
    id: lane.id,
    flow: written(lane.flow),
    key: hex(Buffer.from(lane.key)),
    tenant: written(lane.tenant),
    grp: written(lane.group),
  }
}

export function changesOf(standing: Standing): WrittenRow {
  const { lane } = standing
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
    lease: momentOrNull(leaseEnd(lane)),
    keep_until: momentOrNull(keptUntil(lane)),
  }
}

export function laneOf(row: Row): Lane {
  const name = {
    id: text(row[1]),
    flow: text(row[2]),
    key: Buffer.from(bytes(row[3])).toString(),
    tenant: text(row[4]),
    group: text(row[5]),
  }
  const rest = row[14]
  return Object.assign(
    emptyLane(name),
    {
      row: number(row[0]),
      tail: number(row[6]),
      waiting: number(row[7]),
      bytes: number(row[8]),
      window: moment(row[9]),
      cap: moment(row[10]),
      due: moment(row[11]),
      ticket: number(row[12]),
      line: number(row[13]) as Line,
    },
    typeof rest === 'string' ? readRest(rest) : undefined,
  )
}
