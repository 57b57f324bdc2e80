// `SqlitePlacements` stores which events wait in a lane. The newest placements are in the lane's own row, which is
// written anyway: most lanes need no other row. A list that was read stays in memory as long as its lane. A lane whose
// placements change is always written afterwards.
import { ChurnMap } from '../../churn-map.ts'
import type { Lane, Rank } from '../../model/lane.ts'
import type { WaitingPlacement, PlacementTable } from '../core/tables.ts'
import { number, text, type Row, type Statements } from './statements.ts'

const ADD = 'insert into places (lane, rank, pos, list, replay) values (?, ?, ?, ?, ?)'
const SOME = 'select pos, list, replay from places where lane = ? and rank = ? and pos >= ? order by pos limit ?'
const CHANGE = 'update places set list = ? where lane = ? and rank = ? and pos = ?'
const REMOVE = 'delete from places where lane = ? and rank = ? and pos = ?'
const REMOVE_UP_TO = 'delete from places where lane = ? and rank = ? and pos <= ?'

/** The most placements in the lane's row. One more, and all of them move to the table as one list. */
const MAX_IN_ROW = 32

/** The number of lists of the table that one query reads. */
const LISTS_READ = 4

/** `PlacementList` is one list of the table, under its last position. */
interface PlacementList {
  readonly last: number
  readonly list: readonly WaitingPlacement[]
}

/** `RowPlacements` holds the newest live placements of a lane as the text of its row. The text is parsed only on
    demand. */
interface RowPlacements {
  /** pos,event,size,cap of each, in order. */
  text: string
  count: number
  /** The number of live placements in the table, all before those of the row. */
  inTable: number
  /** Live placements up to this position were taken: the first list of the table may still contain them. */
  taken: number
  /** That first list without the taken placements, once it has been read. */
  first: PlacementList | undefined
  /** The placements added since the lane's row, or a list of `DeferredLaneWrites`, last had all of them. */
  added: string
  /** Whether additions are the only change. */
  hasOnlyAdditions: boolean
  /** The text when it was last parsed, and the result. */
  parsed: { readonly text: string; readonly list: readonly WaitingPlacement[] } | undefined
}

const EMPTY: RowPlacements = {
  text: '',
  count: 0,
  inTable: 0,
  taken: 0,
  first: undefined,
  added: '',
  hasOnlyAdditions: true,
  parsed: undefined,
}

interface RankedPlacement {
  readonly rank: Rank
  readonly placement: WaitingPlacement
}

/** Maintenance looks up one event after the other, mostly of a few lanes. */
const MAX_CACHED_LANES = 500

export class SqlitePlacements implements PlacementTable {
  readonly #sql: Statements
  readonly #byLane = new ChurnMap<number, RowPlacements>()
  /** Per lane, the placements of each event. Kept until a placement changes, because thousands may wait in one lane. */
  readonly #byEvent = new Map<number, ReadonlyMap<number, readonly RankedPlacement[]>>()

  constructor(sql: Statements) {
    this.#sql = sql
  }

  /** `loadRow` reads the cell of a lane's row. It keeps what this commit has already changed. */
  loadRow(row: number, inRow: string): void {
    if (this.#byLane.has(row)) return
    const [far = '', count, list = ''] = inRow.split(';', 3)
    const [elsewhere, taken = 0] = far.split('/', 2)
    this.#byLane.set(row, {
      ...EMPTY,
      inTable: Number(elsewhere),
      taken: Number(taken),
      count: Number(count),
      text: list,
    })
  }

  /** `appendListed` adds placements that a list of `DeferredLaneWrites` has and the lane's row lacks. */
  appendListed(row: number, list: string): void {
    this.#clearByEvent()
    const here = this.#byLane.get(row)
    if (here === undefined) return
    here.text += here.count === 0 ? list : `,${list}`
    here.count += parsePlacements(list).length
  }

  /** `serializeRow` returns the cell for the lane's row. */
  serializeRow(row: number): string {
    const here = this.#byLane.get(row)
    if (here === undefined) return '0;0;'
    here.added = ''
    here.hasOnlyAdditions = true
    const taken = here.taken === 0 ? '' : `/${here.taken}`
    return `${here.inTable}${taken};${here.count};${here.text}`
  }

  hasOnlyAdditions(row: number): boolean {
    return this.#byLane.get(row)?.hasOnlyAdditions === true
  }

  /** `takeAdded` returns the placements for the list of `DeferredLaneWrites`, and counts them as listed. */
  takeAdded(row: number): string {
    const here = this.#byLane.get(row)
    if (here === undefined) return ''
    const { added } = here
    here.added = ''
    return added
  }

  forget(row: number): void {
    this.#clearByEvent()
    this.#byLane.delete(row)
  }

  /** `clear` on an empty map costs as much as on a full one. */
  #clearByEvent(): void {
    if (this.#byEvent.size > 0) this.#byEvent.clear()
  }

  clear(): void {
    this.#clearByEvent()
    this.#byLane.clear()
  }

  add(lane: Lane, rank: Rank, placement: WaitingPlacement): void {
    this.#clearByEvent()
    if (rank === 1) return this.#insert(lane, rank, placement.pos, [placement])
    const here = this.#getOrCreate(lane)
    if (here.count === MAX_IN_ROW) {
      this.#insert(lane, rank, placement.pos - 1, here.text)
      Object.assign(here, { inTable: here.inTable + here.count, count: 0, text: '', hasOnlyAdditions: false })
    }
    const one = serializePlacements([placement])
    here.text += here.count === 0 ? one : `,${one}`
    here.added += here.added === '' ? one : `,${one}`
    here.count++
    return undefined
  }

  findFirst(lane: Lane, rank: Rank, n: number): readonly WaitingPlacement[] {
    const here = this.#getRowPlacements(lane, rank)
    const far: WaitingPlacement[] = []
    for (const { list } of this.#lists(lane, rank, here)) {
      far.push(...list)
      if (far.length >= n) return far.slice(0, n)
    }
    return concatPlacements(far, parseRowPlacements(here)).slice(0, n)
  }

  findUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    const here = this.#getRowPlacements(lane, rank)
    const far: WaitingPlacement[] = []
    for (const { last, list } of this.#lists(lane, rank, here)) {
      far.push(...list)
      if (last >= pos) return far.filter((placement) => placement.pos <= pos)
    }
    return concatPlacements(far, parseRowPlacements(here)).filter((placement) => placement.pos <= pos)
  }

  /** `takeUpTo` writes nothing for a list that is partly taken: the lane's row records up to which position. */
  takeUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    this.#clearByEvent()
    const here = this.#getRowPlacements(lane, rank)
    const taken = this.findUpTo(lane, rank, pos)
    const near = parseRowPlacements(here)
    const left = near.filter((placement) => placement.pos > pos)
    const far = taken.length - (near.length - left.length)
    if (far > 0) this.#recordTaken(lane, rank, here, { pos, far })
    if (left.length < near.length) replaceRowPlacements(here, left)
    return taken
  }

  #recordTaken(
    lane: Lane,
    rank: Rank,
    here: RowPlacements,
    { pos, far }: { readonly pos: number; readonly far: number },
  ): void {
    here.inTable -= far
    here.hasOnlyAdditions = false
    const isLast = rank === 0 && here.inTable === 0
    here.taken = isLast ? 0 : pos
    const { first } = here
    if (!isLast && first !== undefined && first.last > pos) {
      here.first = dropTaken(first, pos)
      return
    }
    // A list keeps its key when its last placements are removed, so the delete covers every remaining list.
    this.#sql.run(REMOVE_UP_TO, lane.row, rank, isLast ? lane.tail : pos)
    here.first = undefined
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    this.#clearByEvent()
    const here = this.#getRowPlacements(lane, rank)
    const gone = new Set(positions)
    const goes = (placement: WaitingPlacement): boolean => gone.has(placement.pos)
    for (const { last, list } of this.#lists(lane, rank, here)) {
      const left = list.filter((placement) => !goes(placement))
      if (left.length === list.length && left.length > 0) continue
      if (left.length === 0) this.#sql.run(REMOVE, lane.row, rank, last)
      else this.#sql.run(CHANGE, serializePlacements(left), lane.row, rank, last)
      here.inTable -= list.length - left.length
      here.hasOnlyAdditions = false
      here.first = undefined
    }
    const near = parseRowPlacements(here)
    const left = near.filter((placement) => !goes(placement))
    if (left.length < near.length) replaceRowPlacements(here, left)
  }

  findByEvent(lane: Lane, event: number): readonly RankedPlacement[] {
    let held = this.#byEvent.get(lane.row)
    if (held === undefined) {
      const all = RANKS.flatMap((rank) =>
        this.findUpTo(lane, rank, lane.tail).map((placement): RankedPlacement => ({ rank, placement })),
      )
      held = Map.groupBy(all, ({ placement }) => placement.event)
      if (this.#byEvent.size === MAX_CACHED_LANES) this.#byEvent.clear()
      this.#byEvent.set(lane.row, held)
    }
    return held.get(event) ?? []
  }

  /** `#lists` yields the lists of the table in order, without the taken placements of the first. */
  *#lists(lane: Lane, rank: Rank, here: RowPlacements): Iterable<PlacementList> {
    if (rank === 0 && here.inTable === 0) return
    const { first, taken } = here
    if (first !== undefined) yield first
    let after = first?.last ?? taken
    for (let n = 1; ; n = LISTS_READ) {
      const some = this.#sql.all(SOME, lane.row, rank, after + 1, n)
      for (const row of some) {
        const list = withReplay(parsePlacements(text(row[1])), row[2])
        const listed = dropTaken({ last: number(row[0]), list }, taken)
        if (after === taken) here.first = listed
        after = listed.last
        yield listed
      }
      if (some.length < n) return
    }
  }

  /** A replayed event has a list of its own, which names its replay. */
  #insert(lane: Lane, rank: Rank, last: number, placements: string | readonly [WaitingPlacement]): void {
    const [list, replay] =
      typeof placements === 'string' ? [placements] : [serializePlacements(placements), placements[0].replay]
    this.#sql.run(ADD, lane.row, rank, last, list, replay ?? null)
  }

  /** The lane's row never holds replays. */
  #getRowPlacements(lane: Lane, rank: Rank): RowPlacements {
    return rank === 0 ? this.#getOrCreate(lane) : { ...EMPTY }
  }

  #getOrCreate(lane: Lane): RowPlacements {
    let here = this.#byLane.get(lane.row)
    if (here === undefined) this.#byLane.set(lane.row, (here = { ...EMPTY }))
    return here
  }
}

const RANKS: readonly Rank[] = [0, 1]

function dropTaken({ last, list }: PlacementList, taken: number): PlacementList {
  return { last, list: (list[0]?.pos ?? 0) > taken ? list : list.filter(({ pos }) => pos > taken) }
}

function concatPlacements(
  some: readonly WaitingPlacement[],
  more: readonly WaitingPlacement[],
): readonly WaitingPlacement[] {
  return some.length === 0 ? more : [...some, ...more]
}

function replaceRowPlacements(here: RowPlacements, left: readonly WaitingPlacement[]): void {
  here.count = left.length
  here.text = serializePlacements(left)
  here.parsed = { text: here.text, list: left }
  here.hasOnlyAdditions = false
}

function parseRowPlacements(here: RowPlacements): readonly WaitingPlacement[] {
  if (here.parsed?.text !== here.text) here.parsed = { text: here.text, list: parsePlacements(here.text) }
  return here.parsed.list
}

function serializePlacements(placements: readonly WaitingPlacement[]): string {
  return placements.map(({ pos, event, size, cap }) => `${pos},${event},${size},${cap}`).join(',')
}

function withReplay(list: readonly WaitingPlacement[], replay: Row[number] | undefined): readonly WaitingPlacement[] {
  return replay === null || replay === undefined
    ? list
    : list.map((placement) => ({ ...placement, replay: text(replay) }))
}

function parsePlacements(list: string): readonly WaitingPlacement[] {
  if (list === '') return []
  const cells = list.split(',')
  const placements: WaitingPlacement[] = []
  for (let at = 0; at < cells.length; at += 4) {
    const [event, size, cap] = [cells[at + 1], cells[at + 2], cells[at + 3]]
    placements.push({ pos: Number(cells[at]), event: Number(event), size: Number(size), cap: Number(cap) })
  }
  return placements
}
