// Places of events in lanes, in a transaction: the first ones of a lane, as many as were asked for. A lane's row is locked
// before its places are read, so that nobody else adds or takes one meanwhile. One place is kept in that row itself, and
// a lane with a single event has no other: most lanes cost one row.
import type { Lane, Rank } from '../../model/lane.ts'
import type { PlaceRow, PlaceTable } from '../rules/tables.ts'
import { insertInto, rowsOf, rowType, withRows, type RowType } from './columns.ts'
import type { Db, Part, Statement } from './part.ts'
import type { Standing } from './standings.ts'
import { number, type Row } from './values.ts'

/** What is known of one rank of one lane. */
interface Known {
  readonly lane: number
  readonly rank: Rank
  readonly isStored: boolean
  /** In the row of the lane. */
  readonly inRow: PlaceRow | undefined
  rows: readonly PlaceRow[]
  /** Every place up to here is in `rows`. */
  upTo: number
  readonly added: PlaceRow[]
  readonly removed: Set<number>
  lacksUpTo: number
  lacksFirst: number
}

type Held = readonly { readonly rank: Rank; readonly place: PlaceRow }[]

/** The first ones of some lanes: (lane, rank, how many), by their numbers. */
const FIRST = `select p.lane, p.rank, p.pos, p.event, p.size, w.n from unnest($1::bigint[], $2::int[], $3::bigint[]) as w (lane, rank, n),
  lateral (select * from places p where p.lane = w.lane and p.rank = w.rank order by p.pos limit w.n) p order by p.lane, p.rank, p.pos`
const UP_TO = `select p.lane, p.rank, p.pos, p.event, p.size from unnest($1::bigint[], $2::int[], $3::bigint[]) as w (lane, rank, pos)
  join places p on p.lane = w.lane and p.rank = w.rank and p.pos <= w.pos order by p.lane, p.rank, p.pos`
const OF_EVENT = `select p.lane, p.rank, p.pos, p.event, p.size from unnest($1::bigint[], $2::bigint[]) as w (lane, event)
  join places p on p.lane = w.lane and p.event = w.event order by p.lane, p.rank, p.pos`
export const ADD_PLACES: RowType = rowType('add_places', {
  lane: 'bigint',
  rank: 'smallint',
  pos: 'bigint',
  event: 'bigint',
  size: 'int',
})
const ADD = insertInto('places', ADD_PLACES)
export const REMOVE_PLACES: RowType = rowType('remove_places', { lane: 'bigint', rank: 'smallint', pos: 'bigint' })
const REMOVE = `delete from places p using ${rowsOf(REMOVE_PLACES, 'w')}
  where p.lane = w.lane and p.rank = w.rank and p.pos = w.pos`

export class PostgresPlaces implements PlaceTable, Part {
  readonly #known = new Map<string, Known>()
  readonly #held = new Map<string, Held>()
  readonly #lacksHeld = new Map<string, readonly [lane: number, event: number]>()
  readonly #stored: (lane: Lane) => Standing | undefined

  /** `stored`: the lane as the server has it; a new one has no places but those that are added. */
  constructor(stored: (lane: Lane) => Standing | undefined) {
    this.#stored = stored
  }

  add(lane: Lane, rank: Rank, place: PlaceRow): void {
    this.#of(lane, rank).added.push(place)
  }

  first(lane: Lane, rank: Rank, n: number): readonly PlaceRow[] {
    const known = this.#of(lane, rank)
    const left = leftOf(known)
    if (known.upTo < Infinity && left.length < n) known.lacksFirst = Math.max(known.lacksFirst, n + known.removed.size)
    return (known.upTo < Infinity ? left : [...left, ...addedOf(known)]).slice(0, n)
  }

  upto(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const known = this.#of(lane, rank)
    if (known.upTo < pos) known.lacksUpTo = Math.max(known.lacksUpTo, pos)
    return [...leftOf(known), ...addedOf(known)].filter((place) => place.pos <= pos)
  }

  take(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const taken = this.upto(lane, rank, pos)
    this.remove(
      lane,
      rank,
      taken.map((place) => place.pos),
    )
    return taken
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    const known = this.#of(lane, rank)
    for (const pos of positions) known.removed.add(pos)
  }

  of(lane: Lane, event: number): Held {
    const name = `${lane.row}/${event}`
    const inTable = this.#held.get(name)
    return RANKS.flatMap((rank) => {
      const known = this.#of(lane, rank)
      if (known.upTo < Infinity && inTable === undefined) this.#lacksHeld.set(name, [lane.row, event])
      const stored =
        known.upTo === Infinity
          ? leftOf(known)
          : [...(inTable ?? []).flatMap((held) => (held.rank === rank ? held.place : [])), ...inRowStill(known)]
      return [...stored, ...addedOf(known)]
        .filter((place) => place.event === event && !known.removed.has(place.pos))
        .map((place) => ({ rank, place }))
    })
  }

  #of(lane: Lane, rank: Rank): Known {
    const name = `${lane.row}/${rank}`
    let known = this.#known.get(name)
    if (known === undefined) {
      const stored = this.#stored(lane)
      const inRow = rank === 0 ? stored?.inRow : undefined
      const inTable = stored === undefined ? 0 : placesOf(stored.lane, rank) - (inRow === undefined ? 0 : 1)
      const fresh = { rows: [], added: [], removed: new Set<number>(), lacksUpTo: 0, lacksFirst: 0 }
      const isStored = stored !== undefined
      known = { lane: lane.row, rank, isStored, inRow, upTo: inTable > 0 ? 0 : Infinity, ...fresh }
      this.#known.set(name, known)
    }
    return known
  }

  again(): void {
    for (const [name, known] of this.#known) {
      // The number of a lane that is not stored is drawn anew: what was said of it concerns another lane.
      if (!known.isStored) this.#known.delete(name)
      known.added.length = 0
      known.removed.clear()
      known.lacksUpTo = 0
      known.lacksFirst = 0
    }
    this.#lacksHeld.clear()
  }

  get isLacking(): boolean {
    return this.#lacksHeld.size > 0 || [...this.#known.values()].some(isLacking)
  }

  async load(db: Db): Promise<void> {
    const lacking = [...this.#known.values()].filter(isLacking)
    // One that lacks both gets both: what is loaded twice is the same.
    await Promise.all([
      this.#loadFirst(
        db,
        lacking.filter((known) => known.lacksFirst > 0),
      ),
      this.#loadUpTo(
        db,
        lacking.filter((known) => known.lacksUpTo > known.upTo),
      ),
      this.#loadHeld(db),
    ])
  }

  async #loadFirst(db: Db, wanted: readonly Known[]): Promise<void> {
    if (wanted.length === 0) return
    const counts = wanted.map((known) => known.lacksFirst)
    const rows = await db.rows(FIRST, [...lanesOf(wanted), counts])
    const byLane = Map.groupBy(rows, (row) => `${number(row[0])}/${number(row[1])}`)
    for (const [at, known] of wanted.entries()) {
      const found = (byLane.get(`${known.lane}/${known.rank}`) ?? []).map(placeOf)
      const isAll = found.length < (counts[at] ?? 0)
      if (!isAll && (found.at(-1)?.pos ?? 0) <= known.upTo) continue
      known.rows = found
      known.upTo = isAll ? Infinity : (found.at(-1)?.pos ?? 0)
    }
  }

  async #loadUpTo(db: Db, wanted: readonly Known[]): Promise<void> {
    if (wanted.length === 0) return
    const ends = wanted.map((known) => known.lacksUpTo)
    const rows = await db.rows(UP_TO, [...lanesOf(wanted), ends])
    const byLane = Map.groupBy(rows, (row) => `${number(row[0])}/${number(row[1])}`)
    for (const [at, known] of wanted.entries()) {
      const end = ends[at] ?? 0
      if (end <= known.upTo) continue
      known.rows = (byLane.get(`${known.lane}/${known.rank}`) ?? []).map(placeOf)
      known.upTo = end
    }
  }

  async #loadHeld(db: Db): Promise<void> {
    const names = [...this.#lacksHeld.keys()]
    const wanted = [...this.#lacksHeld.values()]
    this.#lacksHeld.clear()
    if (wanted.length === 0) return
    const rows = await db.rows(OF_EVENT, [wanted.map(([lane]) => lane), wanted.map(([, event]) => event)])
    const found = Map.groupBy(rows, (row) => `${number(row[0])}/${number(row[3])}`)
    for (const name of names) {
      this.#held.set(
        name,
        (found.get(name) ?? []).map((row) => ({ rank: number(row[1]) as Rank, place: placeOf(row) })),
      )
    }
  }

  /** The place that the row of the lane is to have: the one it has, while it is there, or the first that came since. */
  inRow(lane: Lane): PlaceRow | undefined {
    const known = this.#known.get(`${lane.row}/0`)
    return known === undefined ? this.#stored(lane)?.inRow : inRowOf(known)
  }

  writes(): readonly Statement[] {
    const all = [...this.#known.values()]
    const gone = all.flatMap(({ lane, rank, inRow, removed, added }) =>
      [...removed]
        .filter((pos) => pos !== inRow?.pos && !added.some((place) => place.pos === pos))
        .map((pos) => ({ lane, rank, pos })),
    )
    const added = all.flatMap((known) =>
      addedOf(known)
        .filter((place) => place !== inRowOf(known))
        .map((place) => ({ lane: known.lane, rank: known.rank, ...place })),
    )
    return [...withRows(REMOVE, REMOVE_PLACES, gone), ...withRows(ADD, ADD_PLACES, added)]
  }
}

const RANKS: readonly Rank[] = [0, 1]

function isLacking(known: Known): boolean {
  return known.lacksFirst > 0 || known.lacksUpTo > known.upTo
}

/** Of those that are stored, as far as it is known. */
function leftOf({ rows, removed, inRow, upTo }: Known): readonly PlaceRow[] {
  const all =
    inRow === undefined || inRow.pos > upTo ? rows : [...rows, inRow].toSorted((one, other) => one.pos - other.pos)
  return removed.size === 0 ? all : all.filter((place) => !removed.has(place.pos))
}

function inRowStill({ inRow, removed }: Known): readonly PlaceRow[] {
  return inRow !== undefined && !removed.has(inRow.pos) ? [inRow] : []
}

function inRowOf(known: Known): PlaceRow | undefined {
  return known.rank === 0 ? (inRowStill(known)[0] ?? addedOf(known)[0]) : undefined
}

/** How many a lane has, in its row or in the table. */
function placesOf(lane: Lane, rank: Rank): number {
  const { run } = lane
  const inRun = run === undefined || run.letter || run.rank !== rank ? 0 : run.events
  return inRun + (rank === 0 ? lane.waiting : lane.replays)
}

function addedOf({ added, removed }: Known): readonly PlaceRow[] {
  return removed.size === 0 ? added : added.filter((place) => !removed.has(place.pos))
}

function lanesOf(wanted: readonly Known[]): readonly [readonly number[], readonly number[]] {
  return [wanted.map((known) => known.lane), wanted.map((known) => known.rank)]
}

function placeOf(row: Row): PlaceRow {
  return { pos: number(row[2]), event: number(row[3]), size: number(row[4]) }
}
