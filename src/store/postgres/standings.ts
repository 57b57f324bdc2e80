// Where lanes stand in the index, and which write they are of. An event that only pushes a deadline back does not move
// its lane there: an update that no index has to know of costs half, and a debounced lane gets one with every event. So a
// lane may stand too early, never too late, and is put where it belongs by whoever comes upon it. One that is claimed stays as well,
// and is come upon by nobody while it runs (own-claims.ts).
import { randomInt } from 'node:crypto'
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import { leaseEnd } from '../rules/lane-rest.ts'
import type { PlaceRow } from '../rules/tables.ts'
import type { Columns, WrittenRow } from './columns.ts'
import type { LaneWrite } from './lane-writes.ts'
import type { Statement } from './part.ts'
import { byTurn } from './ready-lines.ts'
import { moment, momentOrNull, number, type Row } from './values.ts'

/** Compared as the deadlines of lanes are. */
type Ring = Pick<Lane, 'due' | 'ticket'>

/** A lane as the server has it. */
export interface Standing {
  readonly lane: Lane
  readonly ring: Ring
  /** Another one with every write, and never the same: who decided on what was written before is refused. */
  readonly rev: number
  /** The one place that is kept with the lane. */
  readonly inRow: PlaceRow | undefined
}

const RING: Columns = { rings: 'bigint', ring_ticket: 'bigint' }
export const STANDING: Columns = {
  ...RING,
  rev: 'bigint',
  first_pos: 'bigint',
  first_event: 'bigint',
  first_size: 'int',
}
/** Nobody is waited for: what is skipped is put right with its lease, at the latest. */
const PUT_RIGHT = `update lanes set rings = due, ring_ticket = ticket, ring_lease = lease
  where id in (select id from lanes where id = any($1) order by id for update skip locked)`

/** Of a row that begins with these columns. */
export function ringIn(row: Row): Ring {
  return { due: moment(row[0]), ticket: number(row[1]) }
}

function placeIn(row: Row): PlaceRow | undefined {
  return row[3] === null ? undefined : { pos: number(row[3]), event: number(row[4]), size: number(row[5]) }
}

function ringColumns({ due, ticket }: Ring): WrittenRow {
  return { rings: momentOrNull(due), ring_ticket: ticket }
}

export function standingColumns(standing: Standing): WrittenRow {
  const { pos = null, event = null, size = null } = standing.inRow ?? {}
  return { ...ringColumns(standing.ring), rev: standing.rev, first_pos: pos, first_event: event, first_size: size }
}

/**
 * Not the next number of the lane: of one who failed that is free for another, and who decided on what the first one would
 * have written would not be told. So each process counts by itself, from where chance has put it.
 */
let lastRev = randomInt(2 ** 20) * 2 ** 32

function newRev(): number {
  return ++lastRev
}

/** Of one transaction. */
export class Standings {
  readonly #stored = new Map<LaneId, Standing>()
  /** Come upon by where they stand, not by name. */
  readonly #found = new Set<LaneId>()

  load(lane: Lane, row: Row): void {
    this.believe({ lane, ring: ringIn(row), rev: number(row[2]), inRow: placeIn(row) })
  }

  believe(standing: Standing): void {
    this.#stored.set(standing.lane.id, standing)
  }

  found(id: LaneId): void {
    this.#found.add(id)
  }

  stored(id: LaneId): Standing | undefined {
    return this.#stored.get(id)
  }

  /** How many of those that were come upon stood too early. */
  get early(): number {
    return this.#early.length
  }

  get #early(): readonly Standing[] {
    return [...this.#found].flatMap((id) => {
      const standing = this.#stored.get(id)
      return standing !== undefined && byTurn(standing.ring, standing.lane) < 0 ? [standing] : []
    })
  }

  /**
   * As the lane is to be written. It is left where it stands if its deadline has only moved back. Where that is, is not asked:
   * whoever comes upon it may put it right meanwhile, and nobody has decided on that. One that was come upon is left there only
   * if it is passed by from now on: its run has begun. With its lease it is put where it belongs, for nobody comes upon one that runs.
   */
  next(lane: Lane, inRow: PlaceRow | undefined, hasBegun: boolean): LaneWrite {
    const before = this.#stored.get(lane.id)
    const mayBeLeft = hasBegun || (!this.#found.has(lane.id) && (before === undefined || isLeft(lane, before)))
    const stays = before !== undefined && mayBeLeft && mayStay(lane, before.lane)
    const standing = { lane, ring: stays ? before.ring : lane, rev: newRev(), inRow }
    return { standing, before, stays, begins: stays && hasBegun }
  }

  /** Those that were come upon and are left as they were, and those that have been passed by for long enough. */
  putRight(passed: readonly LaneId[], isWritten: (id: LaneId) => boolean): readonly Statement[] {
    const ids = [...this.#early.map(({ lane }) => lane.id), ...passed].filter((id) => !isWritten(id))
    return ids.length === 0 ? [] : [[PUT_RIGHT, [ids]]]
  }
}

/** It stands where it belongs, or its lease stays as it is. */
function isLeft(lane: Lane, { lane: before, ring }: Standing): boolean {
  return byTurn(ring, before) >= 0 || leaseEnd(lane) === leaseEnd(before)
}

/** Groups take turns by where their lanes really stand. */
function mayStay(lane: Lane, before: Lane): boolean {
  return (
    before.due < NEVER &&
    lane.due < NEVER &&
    byTurn(before, lane) <= 0 &&
    lane.flow === before.flow &&
    lane.line === before.line &&
    lane.group === '' &&
    before.group === ''
  )
}
