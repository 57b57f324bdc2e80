// Converts lanes to rows and back.
import { createLane, type Lane, type LaneHealth, type RunState } from '../../model/lane.ts'
import { formatRunId, parseRunNumber } from '../core/commit-context.ts'
import {
  getKeepUntil,
  getLeaseEnd,
  isPlainRunning,
  parseRareFields,
  PLAIN_RUN,
  serializeRareFields,
} from '../sql/lane-columns.ts'
import { defineRowType, type ColumnTypes, type RowType, type RowValues } from './columns.ts'
import { POSITION_COLUMNS, toPositionColumns } from './index-position.ts'
import type { WaitingPlacement } from '../core/tables.ts'
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
  'lease',
  'token',
  'run',
  'started',
  'upto',
  'run_events',
  'run_bytes',
  'run_cap',
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
  pinned: 'boolean',
  token: 'bigint',
  run: 'bigint',
  started: 'bigint',
  upto: 'bigint',
  run_events: 'int',
  run_bytes: 'bigint',
  run_cap: 'bigint',
}
/** The columns of a lane's names. A deleted lane may return with other names: its key and group are those of its newest event. */
const NAMED: ColumnTypes = { id: 'text', flow: 'text', key: 'bytea', tenant: 'text', grp: 'text' }
export const SET_LANES: RowType = defineRowType('set_lanes', CHANGED)
export const NAME_LANES: RowType = defineRowType('name_lanes', NAMED)
export const ADD_LANES: RowType = defineRowType('add_lanes', { ...CHANGED, ...NAMED })

/** `ARRIVING_LANES` holds lanes that events enter, with the window of these events. */
export const ARRIVING_LANES: RowType = defineRowType('arriving_lanes', {
  n: 'bigint',
  ...NAMED,
  events: 'int',
  size: 'bigint',
  first_event: 'bigint',
  first_size: 'int',
  quiet: 'bigint',
  longest: 'bigint',
  max_events: 'bigint',
  max_bytes: 'bigint',
  cancels: 'boolean',
  is_new: 'boolean',
})

export function hasSameName(lane: Lane, stored: Lane | undefined): boolean {
  return (
    stored?.key === lane.key &&
    stored.flow === lane.flow &&
    stored.tenant === lane.tenant &&
    stored.group === lane.group
  )
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

/** `toLaneColumns` puts the lane at its correct position in the deadline index. */
export function toLaneColumns(lane: Lane, inlinePlacement: WaitingPlacement | undefined): RowValues {
  const lease = millisOrNull(getLeaseEnd(lane))
  const isPlain = lane.run !== undefined && isPlainRunning(lane.run)
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
    line: lane.health,
    pinned: isDeadlineSet(lane),
    rest: serializeRareFields(isPlain ? { ...lane, run: undefined } : lane),
    ...(isPlain ? toRunColumns(lane.run) : NO_RUN),
    ...toPositionColumns(lane, inlinePlacement),
    lease,
    ring_lease: lease,
    keep_until: millisOrNull(getKeepUntil(lane)),
  }
}

/** `isDeadlineSet` returns whether events that join the lane change neither its deadline nor its run. */
function isDeadlineSet({ run, queuedDeadLetters, blocks }: Lane): boolean {
  if (run === undefined) return queuedDeadLetters + blocks > 0
  return run.state !== 'running' || !run.first || run.rank === 1 || run.isDeadLetter || run.committed || run.purged
}

const NO_RUN: RowValues = {
  token: null,
  run: null,
  started: null,
  upto: null,
  run_events: null,
  run_bytes: null,
  run_cap: null,
}

function toRunColumns({ id, token, started, upto, events, bytes: size, cap }: RunState): RowValues {
  return { token, run: parseRunNumber(id), started, upto, run_events: events, run_bytes: size, run_cap: cap }
}

/** Reads the run that is kept in columns, which begin at `from`. */
function toRun(row: Row, from: number, store: string): RunState | undefined {
  if (row[from + 1] === null) return undefined
  return {
    ...PLAIN_RUN,
    id: formatRunId(store, number(row[from + 2])),
    until: number(row[from]),
    token: number(row[from + 1]),
    started: number(row[from + 3]),
    upto: number(row[from + 4]),
    events: number(row[from + 5]),
    bytes: number(row[from + 6]),
    cap: number(row[from + 7]),
  }
}

/** `from` is the index of the lane's first column in the row. `store` is the name of the store. */
export function toLane(row: Row, store: string, from = 0): Lane {
  const name = {
    id: text(row[from + 1]),
    flow: text(row[from + 2]),
    key: Buffer.from(bytes(row[from + 3])).toString(),
    tenant: text(row[from + 4]),
    group: text(row[from + 5]),
  }
  const rest = row[from + 14]
  const run = toRun(row, from + 15, store)
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
      health: number(row[from + 13]) as LaneHealth,
    } satisfies Partial<Lane>,
    typeof rest === 'string' ? parseRareFields(rest) : undefined,
    run === undefined ? undefined : { run },
  )
}

/** `toPositionedLane` reads a lane from a row that begins with its index position. */
export function toPositionedLane(row: Row, store: string): Lane {
  return toLane(row, store, POSITION_COLUMN_NAMES.length)
}
