// Who waits in a lane. The newest stand in the lane's own row, which is written anyway: most lanes need no other.
// A list that was read is at hand as long as its lane is; a lane whose places change is always written after.
import type { Lane, Rank } from '../../model/lane.ts'
import type { PlaceRow, PlaceTable } from '../embedded/tables.ts'
import { number, type Row, type Statements } from './statements.ts'

const ADD = 'insert into places (lane, rank, pos, event, size) values (?, ?, ?, ?, ?)'
const FIRST = 'select pos, event, size from places where lane = ? and rank = ? order by pos limit ?'
const UPTO = 'select pos, event, size from places where lane = ? and rank = ? and pos <= ? order by pos'
const TAKE = 'delete from places where lane = ? and rank = ? and pos <= ? returning pos, event, size'
const REMOVE = 'delete from places where lane = ? and rank = ? and pos = ?'
const OF = 'select pos, event, size, rank from places where lane = ? and event = ? order by rank, pos'

/** So many newest places stand in the lane's row; one more, and they move to the table together, next to each other. */
const HERE_MAX = 24

/** The newest live places of a lane, as its row has them: read only when somebody wants to know. */
interface Here {
  /** pos,event,size of each, in order. */
  text: string
  count: number
  /** Live places in the table: all before these. */
  elsewhere: number
}

export class SqlitePlaces implements PlaceTable {
  readonly #sql: Statements
  readonly #atHand = new Map<number, Here>()

  constructor(sql: Statements) {
    this.#sql = sql
  }

  /** The lane's row was read. What this commit has already changed stays. */
  read(row: number, written: string): void {
    if (this.#atHand.has(row)) return
    const [elsewhere, count, text] = written.split(';', 3)
    this.#atHand.set(row, { elsewhere: Number(elsewhere), count: Number(count), text: text ?? '' })
  }

  /** What the lane's row has to say. */
  written(row: number): string {
    const here = this.#atHand.get(row)
    return here === undefined ? '0;0;' : `${here.elsewhere};${here.count};${here.text}`
  }

  gone(row: number): void {
    this.#atHand.delete(row)
  }

  letGo(): void {
    this.#atHand.clear()
  }

  add(lane: Lane, rank: Rank, place: PlaceRow): void {
    if (rank === 1) return this.#insert(lane, rank, place)
    const here = this.#here(lane)
    if (here.count === HERE_MAX) {
      for (const older of parsed(here)) this.#insert(lane, rank, older)
      Object.assign(here, { elsewhere: here.elsewhere + here.count, count: 0, text: '' })
    }
    here.text += `${here.count === 0 ? '' : ','}${place.pos},${place.event},${place.size}`
    here.count++
    return undefined
  }

  first(lane: Lane, rank: Rank, n: number): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    if (rank === 0 && here.elsewhere === 0) return parsed(here).slice(0, n)
    const far = this.#sql.all(FIRST, lane.row, rank, n).map(placeOf)
    return far.length === n ? far : [...far, ...parsed(here).slice(0, n - far.length)]
  }

  upto(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    const near = parsed(here).filter((place) => place.pos <= pos)
    if (rank === 0 && here.elsewhere === 0) return near
    return [...this.#sql.all(UPTO, lane.row, rank, pos).map(placeOf), ...near]
  }

  take(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const here = this.#live(lane, rank)
    const all = parsed(here)
    const near = all.filter((place) => place.pos <= pos)
    keep(here, near.length === all.length ? [] : all.slice(near.length))
    if (rank === 0 && here.elsewhere === 0) return near
    // RETURNING answers in no promised order.
    const far = this.#sql.all(TAKE, lane.row, rank, pos).map(placeOf)
    here.elsewhere -= far.length
    return [...far.toSorted((one, other) => one.pos - other.pos), ...near]
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    const here = this.#live(lane, rank)
    const all = parsed(here)
    const left = all.filter((place) => !positions.includes(place.pos))
    keep(here, left)
    if (all.length - left.length === positions.length) return
    for (const pos of positions) here.elsewhere -= this.#sql.run(REMOVE, lane.row, rank, pos)
  }

  of(lane: Lane, event: number): readonly { readonly rank: Rank; readonly place: PlaceRow }[] {
    const near = parsed(this.#here(lane)).filter((place) => place.event === event)
    return [
      ...this.#sql.all(OF, lane.row, event).map((row) => ({ rank: number(row[3]) as Rank, place: placeOf(row) })),
      ...near.map((place) => ({ rank: 0 as Rank, place })),
    ]
  }

  #insert(lane: Lane, rank: Rank, place: PlaceRow): void {
    this.#sql.run(ADD, lane.row, rank, place.pos, place.event, place.size)
  }

  /** Replays are never in the lane's row. */
  #live(lane: Lane, rank: Rank): Here {
    return rank === 0 ? this.#here(lane) : { text: '', count: 0, elsewhere: 0 }
  }

  #here(lane: Lane): Here {
    let here = this.#atHand.get(lane.row)
    if (here === undefined) this.#atHand.set(lane.row, (here = { text: '', count: 0, elsewhere: 0 }))
    return here
  }
}

function keep(here: Here, places: readonly PlaceRow[]): void {
  here.count = places.length
  here.text = places.map(({ pos, event, size }) => `${pos},${event},${size}`).join(',')
}

function parsed(here: Here): readonly PlaceRow[] {
  if (here.count === 0) return []
  const numbers = here.text.split(',').map(Number)
  const places: PlaceRow[] = []
  for (let at = 0; at < numbers.length; at += 3) {
    places.push({ pos: numbers[at] ?? 0, event: numbers[at + 1] ?? 0, size: numbers[at + 2] ?? 0 })
  }
  return places
}

function placeOf(row: Row): PlaceRow {
  return { pos: number(row[0]), event: number(row[1]), size: number(row[2]) }
}
