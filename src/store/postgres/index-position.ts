// `IndexPosition` is where a lane is in the deadline index. An event that only moves a deadline back does not move its lane in the
// index: an update that touches no index costs half, and a debounced lane gets one with every event (functions/append.sql). So a
// lane may be too early in the index, never too late; the scan that finds it moves it. A claimed lane also keeps its position, and
// scans skip it while it runs. All writes of the rules move a lane to its correct position.
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { WaitingPlacement } from '../core/tables.ts'
import type { ColumnTypes, RowValues } from './columns.ts'
import type { Statement } from './row-cache.ts'
import { compareByDeadline } from './ready-lanes.ts'
import { millisOrNever, millisOrNull, number, type Row } from './values.ts'

/** `IndexKey` is compared like the deadlines of lanes. */
type IndexKey = Pick<Lane, 'due' | 'ticket'>

/** `IndexPosition` is a lane as the server has it. */
export interface IndexPosition {
  readonly lane: Lane
  readonly indexKey: IndexKey
  /** The one placement that is kept in the lane's row. */
  readonly inlinePlacement: WaitingPlacement | undefined
}

export const POSITION_COLUMNS: ColumnTypes = {
  rings: 'bigint',
  ring_ticket: 'bigint',
  first_pos: 'bigint',
  first_event: 'bigint',
  first_size: 'int',
  first_cap: 'bigint',
}
/** The update skips locked lanes instead of waiting: another scan moves them. */
const FIX_POSITIONS = `update lanes set rings = due, ring_ticket = ticket, ring_lease = lease
  where id in (select id from lanes where id = any($1) order by id for update skip locked)`

/** `readIndexKey` reads a row that begins with these columns. */
function readIndexKey(row: Row): IndexKey {
  return { due: millisOrNever(row[0]), ticket: number(row[1]) }
}

function readInlinePlacement(row: Row): WaitingPlacement | undefined {
  if (row[2] === null) return undefined
  return { pos: number(row[2]), event: number(row[3]), size: number(row[4]), cap: number(row[5]) }
}

/** The columns of a lane at its correct position. */
export function toPositionColumns({ due, ticket }: IndexKey, inlinePlacement: WaitingPlacement | undefined): RowValues {
  const { pos = null, event = null, size = null, cap = null } = inlinePlacement ?? {}
  const first = { first_pos: pos, first_event: event, first_size: size, first_cap: cap }
  return { rings: millisOrNull(due), ring_ticket: ticket, ...first }
}

/** `IndexPositions` holds the positions of the lanes of one transaction. */
export class IndexPositions {
  readonly #stored = new Map<LaneId, IndexPosition>()
  /** The lanes that a scan found by their position, not by their id. */
  readonly #found = new Set<LaneId>()

  load(lane: Lane, row: Row): void {
    this.#stored.set(lane.id, { lane, indexKey: readIndexKey(row), inlinePlacement: readInlinePlacement(row) })
  }

  markFound(id: LaneId): void {
    this.#found.add(id)
  }

  get(id: LaneId): IndexPosition | undefined {
    return this.#stored.get(id)
  }

  /** `earlyCount` returns how many of the found lanes were too early in the index. */
  get earlyCount(): number {
    return this.#findEarly.length
  }

  get #findEarly(): readonly IndexPosition[] {
    return [...this.#found].flatMap((id) => {
      const standing = this.#stored.get(id)
      return standing !== undefined && compareByDeadline(standing.indexKey, standing.lane) < 0 ? [standing] : []
    })
  }

  /** `fixPositions` moves the lanes that a scan found too early and that the transaction does not write. */
  fixPositions(isWritten: (id: LaneId) => boolean): readonly Statement[] {
    const ids = this.#findEarly.map(({ lane }) => lane.id).filter((id) => !isWritten(id))
    return ids.length === 0 ? [] : [[FIX_POSITIONS, [ids]]]
  }
}
