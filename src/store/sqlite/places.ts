// Who waits in a lane. The newest stand in the lane's own row, which is written anyway: most lanes need no other.
// A list that was read is at hand as long as its lane is; a lane whose places change is always written after.
import type { Lane, Rank } from '../../model/lane.ts'
import type { PlaceRow, PlaceTable } from '../rules/tables.ts'
import { number, text, type Statements } from './statements.ts'

const ADD = 'insert into places (lane, rank, pos, list) values (?, ?, ?, ?)'
const ALL = 'select pos, list from places where lane = ? and rank = ? order by pos'
const CHANGE = 'update places set list = ? where lane = ? and rank = ? and pos = ?'
const REMOVE = 'delete from places where lane = ? and rank = ? and pos = ?'

/** So many newest places stand in the lane's row; one more, and they move to the table as one list. */
const HERE_MAX = 32

/** The newest live places of a lane, as its row has them: read only when somebody wants to know. */
interface Here {
  /** pos,event,size of each, in order. */
  text: string
  count: number
  /** Live places in the table: all before these. */
  elsewhere: number
  /** What was added to the text since the lane's row had all of it, or was listed with what it has not. */
  added: string
  /** Nothing but that is new. */
  onlyAdded: boolean
  /** What the text said when somebody last wanted to know. */
  known: { readonly text: string; readonly list: readonly PlaceRow[] } | undefined
}

const EMPTY: Here = { text: '', count: 0, elsewhere: 0, added: '', onlyAdded: true, known: undefined }

export class SqlitePlaces implements PlaceTable {
  readonly #sql: Statements
  readonly #atHand = new Map<number, Here>()

  constructor(sql: Statements) {
    this.#sql = sql
  }

  /** The lane's row was read. What this commit has already changed stays. */
  read(row: number, inRow: string): void {
    if (this.#atHand.has(row)) return
    const [elsewhere, count, list] = inRow.split(';', 3)
    this.#atHand.set(row, { ...EMPTY, elsewhere: Number(elsewhere), count: Number(count), text: list ?? '' })
  }

  /** Places that the lane's row has not, but a list of lanes that were pushed back has. */
  readMore(row: number, list: string): void {
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
    return `${here.elsewhere};${here.count};${here.text}`
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
    this.#atHand.delete(row)
  }

  letGo(): void {
    this.#atHand.clear()
  }

  add(lane: Lane, rank: Rank, place: PlaceRow): void {
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
    if (here.count >= n && here.elsewhere === 0 && rank === 0) return listOf(here).slice(0, n)
    const far: PlaceRow[] = []
    for (const [, list] of this.#chunks(lane, rank, here)) {
      far.push(...parsed(list))
      if (far.length >= n) return far.slice(0, n)
    }
    return [...far, ...listOf(here)].slice(0, n)
  }

  upto(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    const far = this.#chunks(lane, rank, here).flatMap(([, list]) => parsed(list))
    return [...far, ...listOf(here)].filter((place) => place.pos <= pos)
  }

  take(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    return this.#removeIf(lane, rank, (place) => place.pos <= pos)
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    this.#removeIf(lane, rank, (place) => positions.includes(place.pos))
  }

  of(lane: Lane, event: number): readonly { readonly rank: Rank; readonly place: PlaceRow }[] {
    return RANKS.flatMap((rank) =>
      this.upto(lane, rank, lane.tail)
        .filter((place) => place.event === event)
        .map((place) => ({ rank, place })),
    )
  }

  #removeIf(lane: Lane, rank: Rank, goes: (place: PlaceRow) => boolean): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    const gone: PlaceRow[] = []
    for (const [last, list] of this.#chunks(lane, rank, here)) {
      const all = parsed(list)
      const left = all.filter((place) => !goes(place))
      if (left.length === all.length) continue
      gone.push(...all.filter(goes))
      if (left.length === 0) this.#sql.run(REMOVE, lane.row, rank, last)
      else this.#sql.run(CHANGE, written(left), lane.row, rank, last)
    }
    here.elsewhere -= gone.length
    if (gone.length > 0) here.onlyAdded = false
    const near = listOf(here)
    const left = near.filter((place) => !goes(place))
    if (left.length === near.length) return gone
    here.count = left.length
    here.text = written(left)
    here.onlyAdded = false
    return [...gone, ...near.filter(goes)]
  }

  /** The lists in the table, each under its last position. */
  #chunks(lane: Lane, rank: Rank, here: Here): readonly (readonly [number, string])[] {
    if (rank === 0 && here.elsewhere === 0) return []
    return this.#sql.all(ALL, lane.row, rank).map((row) => [number(row[0]), text(row[1])] as const)
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
