// `PostgresPlacements` holds the placements of a transaction, of each lane as many of the first ones as were asked for. A
// lane's row is locked before its placements are read, so no other transaction adds or takes one meanwhile. One placement is
// kept in the lane's row. A lane with a single event has no other, so most lanes cost one row.
import type { Lane, Rank } from '../../model/lane.ts'
import type { WaitingPlacement, PlacementTable } from '../core/tables.ts'
import { buildInsert, unnestRows, defineRowType, bindRows, type RowType } from './columns.ts'
import type { Db, TransactionTable, Statement } from './row-cache.ts'
import type { IndexPosition } from './index-position.ts'
import { escapeText, number, text, type Row } from './values.ts'

/** `KnownPlacements` is what the transaction knows of one rank of one lane. */
interface KnownPlacements {
  readonly lane: number
  readonly rank: Rank
  readonly isStored: boolean
  /** The placement in the lane's row. */
  readonly inlinePlacement: WaitingPlacement | undefined
  rows: readonly WaitingPlacement[]
  /** Every placement up to this position is in `rows`. */
  upTo: number
  readonly added: WaitingPlacement[]
  readonly removed: Set<number>
  missingUpTo: number
  missingFirst: number
}

type RankedPlacements = readonly { readonly rank: Rank; readonly placement: WaitingPlacement }[]

/** Selects the first placements of some lanes; the parameters are lane rows, ranks and counts. */
const FIRST = `select p.lane, p.rank, p.pos, p.event, p.size, p.cap, p.replay from unnest($1::bigint[], $2::int[], $3::bigint[]) as w (lane, rank, n),
  lateral (select * from places p where p.lane = w.lane and p.rank = w.rank order by p.pos limit w.n) p order by p.lane, p.rank, p.pos`
const UP_TO = `select p.lane, p.rank, p.pos, p.event, p.size, p.cap, p.replay from unnest($1::bigint[], $2::int[], $3::bigint[]) as w (lane, rank, pos)
  join places p on p.lane = w.lane and p.rank = w.rank and p.pos <= w.pos order by p.lane, p.rank, p.pos`
const OF_EVENT = `select p.lane, p.rank, p.pos, p.event, p.size, p.cap, p.replay from unnest($1::bigint[], $2::bigint[]) as w (lane, event)
  join places p on p.lane = w.lane and p.event = w.event order by p.lane, p.rank, p.pos`
export const ADD_PLACES: RowType = defineRowType('add_places', {
  lane: 'bigint',
  rank: 'smallint',
  pos: 'bigint',
  event: 'bigint',
  size: 'int',
  cap: 'bigint',
  replay: 'text',
})
const ADD = buildInsert('places', ADD_PLACES)
export const REMOVE_PLACES: RowType = defineRowType('remove_places', {
  lane: 'bigint',
  rank: 'smallint',
  pos: 'bigint',
})
const REMOVE = `delete from places p using ${unnestRows(REMOVE_PLACES, 'w')}
  where p.lane = w.lane and p.rank = w.rank and p.pos = w.pos`

export class PostgresPlacements implements PlacementTable, TransactionTable {
  readonly #known = new Map<string, KnownPlacements>()
  readonly #byEvent = new Map<string, RankedPlacements>()
  readonly #missingByEvent = new Map<string, readonly [lane: number, event: number]>()
  readonly #getPosition: (lane: Lane) => IndexPosition | undefined

  /** `stored` returns the lane as the server has it. A new lane has only the placements that this transaction adds. */
  constructor(stored: (lane: Lane) => IndexPosition | undefined) {
    this.#getPosition = stored
  }

  add(lane: Lane, rank: Rank, placement: WaitingPlacement): void {
    this.#getKnown(lane, rank).added.push(placement)
  }

  findFirst(lane: Lane, rank: Rank, n: number): readonly WaitingPlacement[] {
    const known = this.#getKnown(lane, rank)
    const left = getRemaining(known)
    if (known.upTo < Infinity && left.length < n)
      known.missingFirst = Math.max(known.missingFirst, n + known.removed.size)
    return (known.upTo < Infinity ? left : [...left, ...getAdded(known)]).slice(0, n)
  }

  findUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    const known = this.#getKnown(lane, rank)
    if (known.upTo < pos) known.missingUpTo = Math.max(known.missingUpTo, pos)
    return [...getRemaining(known), ...getAdded(known)].filter((placement) => placement.pos <= pos)
  }

  takeUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    const taken = this.findUpTo(lane, rank, pos)
    this.remove(
      lane,
      rank,
      taken.map((placement) => placement.pos),
    )
    return taken
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    const known = this.#getKnown(lane, rank)
    for (const pos of positions) known.removed.add(pos)
  }

  findByEvent(lane: Lane, event: number): RankedPlacements {
    const name = `${lane.row}/${event}`
    const inTable = this.#byEvent.get(name)
    return RANKS.flatMap((rank) => {
      const known = this.#getKnown(lane, rank)
      if (known.upTo < Infinity && inTable === undefined) this.#missingByEvent.set(name, [lane.row, event])
      const stored =
        known.upTo === Infinity
          ? getRemaining(known)
          : [
              ...(inTable ?? []).flatMap((held) => (held.rank === rank ? held.placement : [])),
              ...getRemainingInline(known),
            ]
      return [...stored, ...getAdded(known)]
        .filter((placement) => placement.event === event && !known.removed.has(placement.pos))
        .map((placement) => ({ rank, placement }))
    })
  }

  #getKnown(lane: Lane, rank: Rank): KnownPlacements {
    const name = `${lane.row}/${rank}`
    let known = this.#known.get(name)
    if (known === undefined) {
      const stored = this.#getPosition(lane)
      const inRow = rank === 0 ? stored?.inlinePlacement : undefined
      const inTable = stored === undefined ? 0 : countPlacements(stored.lane, rank) - (inRow === undefined ? 0 : 1)
      const fresh = { rows: [], added: [], removed: new Set<number>(), missingUpTo: 0, missingFirst: 0 }
      const isStored = stored !== undefined
      known = { lane: lane.row, rank, isStored, inlinePlacement: inRow, upTo: inTable > 0 ? 0 : Infinity, ...fresh }
      this.#known.set(name, known)
    }
    return known
  }

  resetPass(): void {
    for (const [name, known] of this.#known) {
      // The row number of a new lane is drawn anew in the next pass, so its old number may then belong to another lane.
      if (!known.isStored) this.#known.delete(name)
      known.added.length = 0
      known.removed.clear()
      known.missingUpTo = 0
      known.missingFirst = 0
    }
    this.#missingByEvent.clear()
  }

  get hasMisses(): boolean {
    return this.#missingByEvent.size > 0 || [...this.#known.values()].some(hasMisses)
  }

  async load(db: Db): Promise<void> {
    const missing = [...this.#known.values()].filter(hasMisses)
    // A rank that lacks both loads both; loading twice gives the same rows.
    await Promise.all([
      this.#loadFirst(
        db,
        missing.filter((known) => known.missingFirst > 0),
      ),
      this.#loadUpTo(
        db,
        missing.filter((known) => known.missingUpTo > known.upTo),
      ),
      this.#loadByEvent(db),
    ])
  }

  async #loadFirst(db: Db, wanted: readonly KnownPlacements[]): Promise<void> {
    if (wanted.length === 0) return
    const counts = wanted.map((known) => known.missingFirst)
    const rows = await db.query(FIRST, [...toLaneColumns(wanted), counts])
    const byLane = Map.groupBy(rows, (row) => `${number(row[0])}/${number(row[1])}`)
    for (const [at, known] of wanted.entries()) {
      const found = (byLane.get(`${known.lane}/${known.rank}`) ?? []).map(toPlacementRow)
      const isAll = found.length < (counts[at] ?? 0)
      if (!isAll && (found.at(-1)?.pos ?? 0) <= known.upTo) continue
      known.rows = found
      known.upTo = isAll ? Infinity : (found.at(-1)?.pos ?? 0)
    }
  }

  async #loadUpTo(db: Db, wanted: readonly KnownPlacements[]): Promise<void> {
    if (wanted.length === 0) return
    const ends = wanted.map((known) => known.missingUpTo)
    const rows = await db.query(UP_TO, [...toLaneColumns(wanted), ends])
    const byLane = Map.groupBy(rows, (row) => `${number(row[0])}/${number(row[1])}`)
    for (const [at, known] of wanted.entries()) {
      const end = ends[at] ?? 0
      if (end <= known.upTo) continue
      known.rows = (byLane.get(`${known.lane}/${known.rank}`) ?? []).map(toPlacementRow)
      known.upTo = end
    }
  }

  async #loadByEvent(db: Db): Promise<void> {
    const names = [...this.#missingByEvent.keys()]
    const wanted = [...this.#missingByEvent.values()]
    this.#missingByEvent.clear()
    if (wanted.length === 0) return
    const rows = await db.query(OF_EVENT, [wanted.map(([lane]) => lane), wanted.map(([, event]) => event)])
    const found = Map.groupBy(rows, (row) => `${number(row[0])}/${number(row[3])}`)
    for (const name of names) {
      this.#byEvent.set(
        name,
        (found.get(name) ?? []).map((row) => ({ rank: number(row[1]) as Rank, placement: toPlacementRow(row) })),
      )
    }
  }

  /**
   * `getInlinePlacement` returns the placement to keep in the lane's row: the present one while it exists, or the first that
   * was added since.
   */
  getInlinePlacement(lane: Lane): WaitingPlacement | undefined {
    const known = this.#known.get(`${lane.row}/0`)
    return known === undefined ? this.#getPosition(lane)?.inlinePlacement : selectInline(known)
  }

  buildWrites(): readonly Statement[] {
    const all = [...this.#known.values()]
    const gone = all.flatMap(({ lane, rank, inlinePlacement: inRow, removed, added }) =>
      [...removed]
        .filter((pos) => pos !== inRow?.pos && !added.some((placement) => placement.pos === pos))
        .map((pos) => ({ lane, rank, pos })),
    )
    const added = all.flatMap((known) =>
      getAdded(known)
        .filter((placement) => placement !== selectInline(known))
        .map(({ replay, ...placement }) => ({
          lane: known.lane,
          rank: known.rank,
          ...placement,
          replay: replay === undefined ? null : escapeText(replay),
        })),
    )
    return [...bindRows(REMOVE, REMOVE_PLACES, gone), ...bindRows(ADD, ADD_PLACES, added)]
  }
}

const RANKS: readonly Rank[] = [0, 1]

function hasMisses(known: KnownPlacements): boolean {
  return known.missingFirst > 0 || known.missingUpTo > known.upTo
}

/** `getRemaining` returns the known stored placements without the removed ones. */
function getRemaining({ rows, removed, inlinePlacement: inRow, upTo }: KnownPlacements): readonly WaitingPlacement[] {
  const all =
    inRow === undefined || inRow.pos > upTo ? rows : [...rows, inRow].toSorted((one, other) => one.pos - other.pos)
  return removed.size === 0 ? all : all.filter((placement) => !removed.has(placement.pos))
}

function getRemainingInline({ inlinePlacement: inRow, removed }: KnownPlacements): readonly WaitingPlacement[] {
  return inRow !== undefined && !removed.has(inRow.pos) ? [inRow] : []
}

function selectInline(known: KnownPlacements): WaitingPlacement | undefined {
  return known.rank === 0 ? (getRemainingInline(known)[0] ?? getAdded(known)[0]) : undefined
}

/** `countPlacements` returns how many placements a lane has, in its row and in the table. */
function countPlacements(lane: Lane, rank: Rank): number {
  const { run } = lane
  const inRun = run === undefined || run.isDeadLetter || run.rank !== rank ? 0 : run.events
  return inRun + (rank === 0 ? lane.waiting : lane.replays)
}

function getAdded({ added, removed }: KnownPlacements): readonly WaitingPlacement[] {
  return removed.size === 0 ? added : added.filter((placement) => !removed.has(placement.pos))
}

function toLaneColumns(wanted: readonly KnownPlacements[]): readonly [readonly number[], readonly number[]] {
  return [wanted.map((known) => known.lane), wanted.map((known) => known.rank)]
}

function toPlacementRow(row: Row): WaitingPlacement {
  const placement = { pos: number(row[2]), event: number(row[3]), size: number(row[4]), cap: number(row[5]) }
  return row[6] === null ? placement : { ...placement, replay: text(row[6]) }
}
