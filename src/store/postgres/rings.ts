// Where lanes stand in the index. An event that only pushes a deadline back does not move its lane there: an update that no
// index has to know of costs half, and a debounced lane gets one with every event. So a lane may stand too early, never too
// late, and is put where it belongs by whoever comes upon it.
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import { sendRows, updateOf, type Columns, type WrittenRow } from './columns.ts'
import type { Db } from './part.ts'
import { byTurn } from './ready-lines.ts'
import { moment, momentOrNull, number, type Row } from './values.ts'

/** Compared as the deadlines of lanes are. */
export type Ring = Pick<Lane, 'due' | 'ticket'>

export const RING_COLUMNS: Columns = { rings: 'bigint', ring_ticket: 'bigint' }
const PUT_RIGHT_COLUMNS: Columns = { id: 'text', ...RING_COLUMNS }
const PUT_RIGHT = updateOf('lanes', PUT_RIGHT_COLUMNS)

/** Of a row that ends with them. */
export function ringIn(row: Row): Ring {
  return { due: moment(row.at(-2)), ticket: number(row.at(-1)) }
}

export function ringColumns({ due, ticket }: Ring): WrittenRow {
  return { rings: momentOrNull(due), ring_ticket: ticket }
}

/** Of one transaction. */
export class Rings {
  readonly #stored = new Map<LaneId, Ring>()
  /** Come upon by where they stand, not by name. */
  readonly #found = new Map<LaneId, Lane>()

  load(id: LaneId, row: Row): void {
    this.#stored.set(id, ringIn(row))
  }

  found(lane: Lane): void {
    this.#found.set(lane.id, lane)
  }

  stored(id: LaneId): Ring | undefined {
    return this.#stored.get(id)
  }

  /** How many of those that were come upon stood too early. */
  get early(): number {
    return [...this.#found.values()].filter((lane) => this.#isEarly(lane)).length
  }

  #isEarly(lane: Lane): boolean {
    const ring = this.#stored.get(lane.id)
    return ring !== undefined && byTurn(ring, lane) < 0
  }

  /** Where the lane is to stand; `before`: as the server has it. Groups take turns by where their lanes really stand. */
  next(lane: Lane, before: Lane | undefined): Ring {
    const ring = this.#stored.get(lane.id)
    const stays =
      ring !== undefined &&
      lane.due < NEVER &&
      byTurn(ring, lane) <= 0 &&
      lane.flow === before?.flow &&
      lane.line === before.line &&
      lane.group === '' &&
      before.group === '' &&
      !this.#found.has(lane.id)
    return stays ? ring : lane
  }

  /** Those that were come upon, and are left as they were. */
  async putRight(db: Db, isWritten: (id: LaneId) => boolean): Promise<void> {
    const early = [...this.#found.values()].filter((lane) => this.#isEarly(lane) && !isWritten(lane.id))
    const rows = early.map((lane) => ({ id: lane.id, ...ringColumns(lane) }))
    await sendRows(db, PUT_RIGHT, PUT_RIGHT_COLUMNS, rows)
  }
}
