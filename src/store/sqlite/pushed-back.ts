// Lanes that events have only pushed back. A debounced lane changes with every event and is looked at once, at the end:
// its row and its place in the index would be half of what an append writes. So a commit writes one row that lists what
// changed, and the lane's own row follows when somebody looks at it. Until then the index rings for it early, never late.
// After a crash the lists bring the lanes to where they were.
import { BusyMap } from '../../busy-map.ts'
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { SqlitePlaces } from './places.ts'
import { number, text, type Statements } from './statements.ts'

/** Lanes whose rows may be behind, and commits to go through on opening. Beyond these the oldest are written. */
const LANES_BEHIND = 2_048
const COMMITS_BEHIND = 256

const ADD = 'insert into pushed_back (n, list) values (?, ?)'
const LISTS = 'select n, list from pushed_back order by n'
const FORGET = 'delete from pushed_back where n < ?'

interface Behind {
  readonly lane: Lane
  /** Where the index has it. */
  readonly alarm: Millis
  /** The first list that has something of it which its row has not. */
  readonly since: number
}

/** One lane of a list. */
interface Pushed extends Pick<Lane, 'row' | 'tail' | 'waiting' | 'bytes' | 'window' | 'cap' | 'due' | 'ticket'> {
  /** The places that came with it, as a lane's row lists them. */
  readonly places: string
}

export class PushedBack {
  readonly #sql: Statements
  readonly #places: SqlitePlaces
  /** In the order in which they fell behind. */
  readonly #behind = new BusyMap<LaneId, Behind>()
  /** What the list of this commit has to have. */
  readonly #changed = new Set<LaneId>()
  /** The number of that list, and the first that is still needed. */
  #next = 1
  #first = 1

  constructor(sql: Statements, places: SqlitePlaces) {
    this.#sql = sql
    this.#places = places
  }

  get count(): number {
    return this.#behind.size
  }

  has(id: LaneId): boolean {
    return this.#behind.has(id)
  }

  /** Whether it is enough to list the lane as it is now: nothing but places at its end and a later deadline is new. */
  takes(before: Lane, lane: Lane): boolean {
    const known = this.#behind.get(lane.id)
    const alarm = known?.alarm ?? before.due
    const later = lane.due >= alarm && lane.due < NEVER && lane.tail > before.tail
    if (!later || !this.#places.onlyAdded(lane.row)) return false
    this.#behind.set(lane.id, { lane, alarm, since: known?.since ?? this.#next })
    this.#changed.add(lane.id)
    return true
  }

  /** Its row was written, or removed. */
  ended(id: LaneId): void {
    if (this.#behind.delete(id)) this.#changed.delete(id)
  }

  all(): readonly Lane[] {
    return Array.from(this.#behind.values(), ({ lane }) => lane)
  }

  /** The first deadline that one of them has now. */
  firstDue(flow: string): Millis {
    let first = NEVER
    for (const { lane } of this.#behind.values()) if (lane.flow === flow) first = Math.min(first, lane.due)
    return first
  }

  /** Those that have been behind for long enough. */
  overdue(): readonly Lane[] {
    const lanes: Lane[] = []
    for (const { lane, since } of this.#behind.values()) {
      if (since > this.#next - COMMITS_BEHIND && this.#behind.size - lanes.length <= LANES_BEHIND) break
      lanes.push(lane)
    }
    return lanes
  }

  /** The last thing in a commit. */
  write(): void {
    if (this.#changed.size > 0) {
      let list = ''
      for (const id of this.#changed) list += (list === '' ? '' : ';') + this.#listed(id)
      this.#sql.run(ADD, this.#next, list)
      this.#changed.clear()
      this.#next++
    }
    const [first] = this.#behind.values()
    const oldest = first?.since ?? this.#next
    if (oldest === this.#first) return
    this.#sql.run(FORGET, oldest)
    this.#first = oldest
  }

  /** Lanes as the lists have them, given their rows. */
  read(rowOf: (row: number) => Lane | undefined): readonly Lane[] {
    this.#behind.clear()
    this.#changed.clear()
    this.#first = 1
    this.#next = 1
    const inFile = new Map<number, Lane | undefined>()
    const rowOnce = (row: number): Lane | undefined => {
      if (!inFile.has(row)) inFile.set(row, rowOf(row))
      return inFile.get(row)
    }
    for (const [n, list] of this.#sql.all(LISTS)) {
      if (this.#next === 1) this.#first = number(n)
      this.#next = number(n) + 1
      for (const pushed of text(list).split(';')) this.#readOne(parsed(pushed), number(n), rowOnce)
    }
    return this.all()
  }

  #readOne({ places, ...pushed }: Pushed, n: number, rowOf: (row: number) => Lane | undefined): void {
    const inFile = rowOf(pushed.row)
    // Removed, or written after all: positions only grow.
    if (inFile === undefined) return
    const known = this.#behind.get(inFile.id)
    const before = known?.lane ?? inFile
    if (before.tail >= pushed.tail) return
    this.#places.readMore(pushed.row, places)
    const lane = { ...before, ...pushed }
    this.#behind.set(lane.id, { lane, alarm: known?.alarm ?? inFile.due, since: known?.since ?? n })
  }

  #listed(id: LaneId): string {
    const lane = this.#behind.get(id)?.lane
    if (lane === undefined) return ''
    const { row, tail, waiting, bytes, window, cap, due, ticket } = lane
    return `${row},${tail},${waiting},${bytes},${window},${cap},${due},${ticket},${this.#places.takeAdded(row)}`
  }
}

function parsed(pushed: string): Pushed {
  const [row = 0, tail = 0, waiting = 0, bytes = 0, window = 0, cap = 0, due = 0, ticket = 0, ...places] = pushed
    .split(',')
    .map(Number)
  return { row, tail, waiting, bytes, window, cap, due, ticket, places: places.join(',') }
}
