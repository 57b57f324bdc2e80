// `IndexPosition` is where a lane is in the deadline index, and which write it comes from. An event that only moves a deadline
// back does not move its lane in the index: an update that touches no index costs half, and a debounced lane gets one with
// every event. So a lane may be too early in the index, never too late; the scan that finds it moves it. A claimed lane also
// keeps its position, and scans skip it while it runs (deferred-index-moves.ts).
import { randomInt } from 'node:crypto'
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import { getLeaseEnd } from '../sql/lane-columns.ts'
import type { WaitingPlacement } from '../core/tables.ts'
import type { ColumnTypes, RowValues } from './columns.ts'
import type { LaneWrite } from './lane-writes.ts'
import type { Statement } from './row-cache.ts'
import { compareByDeadline } from './ready-lanes.ts'
import { millisOrNever, millisOrNull, number, type Row } from './values.ts'

/** `IndexKey` is compared like the deadlines of lanes. */
type IndexKey = Pick<Lane, 'due' | 'ticket'>

/** `IndexPosition` is a lane as the server has it. */
export interface IndexPosition {
  readonly lane: Lane
  readonly indexKey: IndexKey
  /** A number that is unique to each write. The server rejects a change that was decided on an older write. */
  readonly rev: number
  /** The one placement that is kept in the lane's row. */
  readonly inlinePlacement: WaitingPlacement | undefined
}

const INDEX_KEY_COLUMNS: ColumnTypes = { rings: 'bigint', ring_ticket: 'bigint' }
export const POSITION_COLUMNS: ColumnTypes = {
  ...INDEX_KEY_COLUMNS,
  rev: 'bigint',
  first_pos: 'bigint',
  first_event: 'bigint',
  first_size: 'int',
  first_cap: 'bigint',
}
/** The update skips locked lanes instead of waiting: they are moved when their lease is renewed, at the latest. */
const FIX_POSITIONS = `update lanes set rings = due, ring_ticket = ticket, ring_lease = lease
  where id in (select id from lanes where id = any($1) order by id for update skip locked)`

/** `readIndexKey` reads a row that begins with these columns. */
function readIndexKey(row: Row): IndexKey {
  return { due: millisOrNever(row[0]), ticket: number(row[1]) }
}

function readInlinePlacement(row: Row): WaitingPlacement | undefined {
  if (row[3] === null) return undefined
  return { pos: number(row[3]), event: number(row[4]), size: number(row[5]), cap: number(row[6]) }
}

function toIndexKeyColumns({ due, ticket }: IndexKey): RowValues {
  return { rings: millisOrNull(due), ring_ticket: ticket }
}

export function toPositionColumns(position: IndexPosition): RowValues {
  const { pos = null, event = null, size = null, cap = null } = position.inlinePlacement ?? {}
  const first = { first_pos: pos, first_event: event, first_size: size, first_cap: cap }
  return { ...toIndexKeyColumns(position.indexKey), rev: position.rev, ...first }
}

/**
 * A revision is not the lane's last revision plus one. The number of a failed write would then be free for another process, and
 * an append that was decided on the failed write would not be rejected. So each process counts by itself, from a random start.
 */
let lastRevision = randomInt(2 ** 20) * 2 ** 32

function drawRevision(): number {
  return ++lastRevision
}

/** `IndexPositions` holds the positions of the lanes of one transaction. */
export class IndexPositions {
  readonly #stored = new Map<LaneId, IndexPosition>()
  /** The lanes that a scan found by their position, not by their id. */
  readonly #found = new Set<LaneId>()

  load(lane: Lane, row: Row): void {
    this.set({ lane, indexKey: readIndexKey(row), rev: number(row[2]), inlinePlacement: readInlinePlacement(row) })
  }

  set(position: IndexPosition): void {
    this.#stored.set(position.lane.id, position)
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

  /**
   * `planWrite` decides how to write the lane. The lane keeps its index position if its deadline has only moved back; the
   * position itself is not checked, because a scan may fix it meanwhile and no decision depends on it. A lane that a scan found
   * keeps its position only if its run has begun, because scans skip it from then on. It moves when its lease is renewed,
   * because no scan finds a running lane.
   */
  planWrite(lane: Lane, inRow: WaitingPlacement | undefined, hasBegun: boolean): LaneWrite {
    const before = this.#stored.get(lane.id)
    const isOpen = !this.#found.has(lane.id) && (before === undefined || mayLeave(lane, before))
    const mayBeLeft = hasBegun || (isOpen && !isNewClaim(lane, before?.lane))
    const stays = before !== undefined && mayBeLeft && canStay(lane, before.lane)
    const standing = { lane, indexKey: stays ? before.indexKey : lane, rev: drawRevision(), inlinePlacement: inRow }
    return { position: standing, before, keepsPosition: stays, beginsRun: stays && hasBegun }
  }

  /**
   * `fixPositions` moves the lanes that a scan found too early and that the transaction does not write, and the lanes that were
   * skipped often enough.
   */
  fixPositions(passed: readonly LaneId[], isWritten: (id: LaneId) => boolean): readonly Statement[] {
    const ids = [...this.#findEarly.map(({ lane }) => lane.id), ...passed].filter((id) => !isWritten(id))
    return ids.length === 0 ? [] : [[FIX_POSITIONS, [ids]]]
  }
}

/** `mayLeave` returns whether the lane is at its correct position, or its lease is unchanged. */
function mayLeave(lane: Lane, { lane: before, indexKey: ring }: IndexPosition): boolean {
  return compareByDeadline(ring, before) >= 0 || getLeaseEnd(lane) === getLeaseEnd(before)
}

/**
 * `isNewClaim` returns whether the write claims the lane. A claimed lane moves in the index, unless a new run begins in a ready
 * lane (`hasBegun`). Live runs of lanes without a group are counted like those of a group, by their position at the end of
 * their lease.
 */
function isNewClaim({ run }: Lane, before: Lane | undefined): boolean {
  return run?.state === 'running' && run.token !== before?.run?.token
}

/** A lane with a group never keeps its position: groups take turns by the exact positions of their lanes. */
function canStay(lane: Lane, before: Lane): boolean {
  return (
    before.due < NEVER &&
    lane.due < NEVER &&
    compareByDeadline(before, lane) <= 0 &&
    lane.flow === before.flow &&
    lane.line === before.line &&
    lane.group === '' &&
    before.group === ''
  )
}
