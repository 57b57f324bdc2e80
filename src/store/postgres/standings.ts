// Where lanes stand in the index, and how often they were written. An event that only pushes a deadline back does not move
// its lane there: an update that no index has to know of costs half, and a debounced lane gets one with every event. So a
// lane may stand too early, never too late, and is put where it belongs by whoever comes upon it.
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import { sendRows, updateOf, type Columns, type WrittenRow } from './columns.ts'
import type { Db } from './part.ts'
import { byTurn } from './ready-lines.ts'
import { moment, momentOrNull, number, type Row } from './values.ts'

/** Compared as the deadlines of lanes are. */
type Ring = Pick<Lane, 'due' | 'ticket'>

/** A lane as the server has it. */
export interface Standing {
  readonly lane: Lane
  readonly ring: Ring
  /** One more with every write: who decided on an older one is refused. */
  readonly rev: number
}

export const STANDING: Columns = { rings: 'bigint', ring_ticket: 'bigint', rev: 'bigint' }
const PUT_RIGHT_COLUMNS: Columns = { id: 'text', ...STANDING }
const PUT_RIGHT = updateOf('lanes', PUT_RIGHT_COLUMNS)

/** Of a row that ends with these columns. */
export function ringIn(row: Row): Ring {
  return { due: moment(row.at(-3)), ticket: number(row.at(-2)) }
}

export function standingColumns({ ring, rev }: Standing): WrittenRow {
  return { rings: momentOrNull(ring.due), ring_ticket: ring.ticket, rev }
}

/** Of one transaction. */
export class Standings {
  readonly #stored = new Map<LaneId, Standing>()
  /** Come upon by where they stand, not by name. */
  readonly #found = new Set<LaneId>()

  load(lane: Lane, row: Row): void {
    this.believe({ lane, ring: ringIn(row), rev: number(row.at(-1)) })
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

  /** As the lane is to be written. Groups take turns by where their lanes really stand. */
  next(lane: Lane): Standing {
    const before = this.#stored.get(lane.id)
    if (before === undefined) return { lane, ring: lane, rev: 0 }
    const stays =
      lane.due < NEVER &&
      byTurn(before.ring, lane) <= 0 &&
      lane.flow === before.lane.flow &&
      lane.line === before.lane.line &&
      lane.group === '' &&
      before.lane.group === '' &&
      !this.#found.has(lane.id)
    return { lane, ring: stays ? before.ring : lane, rev: before.rev + 1 }
  }

  /** Those that were come upon, and are left as they were. */
  async putRight(db: Db, isWritten: (id: LaneId) => boolean): Promise<void> {
    const early = this.#early.filter(({ lane }) => !isWritten(lane.id))
    const rows = early.map(({ lane, rev }) => ({
      id: lane.id,
      ...standingColumns({ lane, ring: lane, rev: rev + 1 }),
    }))
    await sendRows(db, PUT_RIGHT, PUT_RIGHT_COLUMNS, rows)
  }
}
