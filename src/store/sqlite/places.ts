// Who waits in a lane. The newest stand in the lane's own row, which is written anyway: most lanes need no other.
// A list that was read is at hand as long as its lane is; a lane whose places change is always written after.
import { BusyMap } from '../../busy-map.ts'
import type { Lane, Rank } from '../../model/lane.ts'
import type { PlaceRow, PlaceTable } from '../rules/tables.ts'
import { number, text, type Statements } from './statements.ts'

const ADD = 'insert into places (lane, rank, pos, list) values (?, ?, ?, ?)'
const SOME = 'select pos, list from places where lane = ? and rank = ? and pos >= ? order by pos limit ?'
const CHANGE = 'update places set list = ? where lane = ? and rank = ? and pos = ?'
const REMOVE = 'delete from places where lane = ? and rank = ? and pos = ?'
const REMOVE_UP_TO = 'delete from places where lane = ? and rank = ? and pos <= ?'

/** So many newest places stand in the lane's row; one more, and they move to the table as one list. */
const HERE_MAX = 32

/** Lists of the table that are read together. */
const LISTS_READ = 4

/** A list of the table, under its last position. */
interface Listed {
  readonly last: number
  readonly list: readonly PlaceRow[]
}

/** The newest live places of a lane, as its row has them: read only when somebody wants to know. */
interface Here {
  /** pos,event,size of each, in order. */
  text: string
  count: number
  /** Live places in the table: all before these. */
  elsewhere: number
  /** Live places up to this one were taken: the first list of the table may still name them. */
  taken: number
  /** That list without those, when somebody has read it. */
  first: Listed | undefined
  /** What was added to the text since the lane's row had all of it, or was listed with what it has not. */
  added: string
  /** Nothing but that is new. */
  onlyAdded: boolean
  /** What the text said when somebody last wanted to know. */
  known: { readonly text: string; readonly list: readonly PlaceRow[] } | undefined
}

const EMPTY: Here = {
  text: '',
  count: 0,
  elsewhere: 0,
  taken: 0,
  first: undefined,
  added: '',
  onlyAdded: true,
  known: undefined,
}

interface Held {
  readonly rank: Rank
  readonly place: PlaceRow
}

/** Upkeep asks for one event after the other, mostly of a few lanes. */
const LANES_HELD = 500

export class SqlitePlaces implements PlaceTable {
  readonly #sql: Statements
  readonly #atHand = new BusyMap<number, Here>()
  /** By lane, the places of each event: as long as none changes, for thousands may wait in one. */
  readonly #held = new Map<number, ReadonlyMap<number, readonly Held[]>>()

  constructor(sql: Statements) {
    this.#sql = sql
  }

  /** The lane's row was read. What this commit has already changed stays. */
  read(row: number, inRow: string): void {
    if (this.#atHand.has(row)) return
    const [far = '', count, list = ''] = inRow.split(';', 3)
    const [elsewhere, taken = 0] = far.split('/', 2)
    this.#atHand.set(row, {
      ...EMPTY,
      elsewhere: Number(elsewhere),
      taken: Number(taken),
      count: Number(count),
      text: list,
    })
  }

  /** Places that the lane's row has not, but a list of lanes that were pushed back has. */
  readMore(row: number, list: string): void {
    this.#forgetHeld()
    const here = this.#atHand.get(row)
    if (here === undefined) return
    here.text += here.count === 0 ? list : `,${list}`
    here.count += parsed(list).length
  }

  /** What the lane's row has to say. */
  written(row: number): string {
    const here = this.#atHand.get(row)
    if (here === undefined) return '0;0;'
    here.added = ''
    here.onlyAdded = true
    const taken = here.taken === 0 ? '' : `/${here.taken}`
    return `${here.elsewhere}${taken};${here.count};${here.text}`
  }

  onlyAdded(row: number): boolean {
    return this.#atHand.get(row)?.onlyAdded === true
  }

  /** The places that a list of lanes that were pushed back has to have: from now on it has them. */
  takeAdded(row: number): string {
    const here = this.#atHand.get(row)
    if (here === undefined) return ''
    const { added } = here
    here.added = ''
    return added
  }

  gone(row: number): void {
    this.#forgetHeld()
    this.#atHand.delete(row)
  }

  /** Emptying a map costs as much when it is empty. */
  #forgetHeld(): void {
    if (this.#held.size > 0) this.#held.clear()
  }

  letGo(): void {
    this.#forgetHeld()
    this.#atHand.clear()
  }

  add(lane: Lane, rank: Rank, place: PlaceRow): void {
    this.#forgetHeld()
    if (rank === 1) return this.#insert(lane, rank, place.pos, written([place]))
    const here = this.#here(lane)
    if (here.count === HERE_MAX) {
      this.#insert(lane, rank, place.pos - 1, here.text)
      Object.assign(here, { elsewhere: here.elsewhere + here.count, count: 0, text: '', onlyAdded: false })
    }
    const one = `${place.pos},${place.event},${place.size}`
    here.text += here.count === 0 ? one : `,${one}`
    here.added += here.added === '' ? one : `,${one}`
    here.count++
    return undefined
  }

  first(lane: Lane, rank: Rank, n: number): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    const far: PlaceRow[] = []
    for (const { list } of this.#lists(lane, rank, here)) {
      far.push(...list)
      if (far.length >= n) return far.slice(0, n)
    }
    return joined(far, listOf(here)).slice(0, n)
  }

  upto(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    const far: PlaceRow[] = []
    for (const { last, list } of this.#lists(lane, rank, here)) {
      far.push(...list)
      if (last >= pos) return far.filter((place) => place.pos <= pos)
    }
    return joined(far, listOf(here)).filter((place) => place.pos <= pos)
  }

  /** Of a list of which some are taken nothing is written: the lane's row says how far. */
  take(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    this.#forgetHeld()
    const here = this.#live(lane, rank)
    const taken = this.upto(lane, rank, pos)
    const near = listOf(here)
    const left = near.filter((place) => place.pos > pos)
    const far = taken.length - (near.length - left.length)
    if (far > 0) this.#taken(lane, rank, here, { pos, far })
    if (left.length < near.length) change(here, left)
    return taken
  }

  #taken(lane: Lane, rank: Rank, here: Here, { pos, far }: { readonly pos: number; readonly far: number }): void {
    here.elsewhere -= far
    here.onlyAdded = false
    const isLast = rank === 0 && here.elsewhere === 0
    here.taken = isLast ? 0 : pos
    const { first } = here
    if (!isLast && first !== undefined && first.last > pos) {
      here.first = untaken(first, pos)
      return
    }
    // A list keeps its name when its last places are removed: of those that are left none may stay behind.
    this.#sql.run(REMOVE_UP_TO, lane.row, rank, isLast ? lane.tail : pos)
    here.first = undefined
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    this.#forgetHeld()
    const here = this.#live(lane, rank)
    const gone = new Set(positions)
    const goes = (place: PlaceRow): boolean => gone.has(place.pos)
    for (const { last, list } of this.#lists(lane, rank, here)) {
      const left = list.filter((place) => !goes(place))
      if (left.length === list.length && left.length > 0) continue
      if (left.length === 0) this.#sql.run(REMOVE, lane.row, rank, last)
      else this.#sql.run(CHANGE, written(left), lane.row, rank, last)
      here.elsewhere -= list.length - left.length
      here.onlyAdded = false
      here.first = undefined
    }
    const near = listOf(here)
    const left = near.filter((place) => !goes(place))
    if (left.length < near.length) change(here, left)
  }

  of(lane: Lane, event: number): readonly Held[] {
    let held = this.#held.get(lane.row)
    if (held === undefined) {
      const all = RANKS.flatMap((rank) => this.upto(lane, rank, lane.tail).map((place): Held => ({ rank, place })))
      held = Map.groupBy(all, ({ place }) => place.event)
      if (this.#held.size === LANES_HELD) this.#held.clear()
      this.#held.set(lane.row, held)
    }
    return held.get(event) ?? []
  }

  /** The lists of the table in their order, without what was taken of the first. */
  *#lists(lane: Lane, rank: Rank, here: Here): Iterable<Listed> {
    if (rank === 0 && here.elsewhere === 0) return
    const { first, taken } = here
    if (first !== undefined) yield first
    let after = first?.last ?? taken
    for (let n = 1; ; n = LISTS_READ) {
      const some = this.#sql.all(SOME, lane.row, rank, after + 1, n)
      for (const row of some) {
        const listed = untaken({ last: number(row[0]), list: parsed(text(row[1])) }, taken)
        if (after === taken) here.first = listed
        after = listed.last
        yield listed
      }
      if (some.length < n) return
    }
  }

  #insert(lane: Lane, rank: Rank, last: number, list: string): void {
    this.#sql.run(ADD, lane.row, rank, last, list)
  }

  /** Replays are never in the lane's row. */
  #live(lane: Lane, rank: Rank): Here {
    return rank === 0 ? this.#here(lane) : { ...EMPTY }
  }

  #here(lane: Lane): Here {
    let here = this.#atHand.get(lane.row)
    if (here === undefined) this.#atHand.set(lane.row, (here = { ...EMPTY }))
    return here
  }
}

const RANKS: readonly Rank[] = [0, 1]

function untaken({ last, list }: Listed, taken: number): Listed {
  return { last, list: (list[0]?.pos ?? 0) > taken ? list : list.filter(({ pos }) => pos > taken) }
}

function joined(some: readonly PlaceRow[], more: readonly PlaceRow[]): readonly PlaceRow[] {
  return some.length === 0 ? more : [...some, ...more]
}

function change(here: Here, left: readonly PlaceRow[]): void {
  here.count = left.length
  here.text = written(left)
  here.known = { text: here.text, list: left }
  here.onlyAdded = false
}

function listOf(here: Here): readonly PlaceRow[] {
  if (here.known?.text !== here.text) here.known = { text: here.text, list: parsed(here.text) }
  return here.known.list
}

function written(places: readonly PlaceRow[]): string {
  return places.map(({ pos, event, size }) => `${pos},${event},${size}`).join(',')
}

function parsed(list: string): readonly PlaceRow[] {
  if (list === '') return []
  const cells = list.split(',')
  const places: PlaceRow[] = []
  for (let at = 0; at < cells.length; at += 3) {
    places.push({ pos: Number(cells[at]), event: Number(cells[at + 1]), size: Number(cells[at + 2]) })
  }
  return places
}
