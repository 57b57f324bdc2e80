// `DeferredLaneWrites` delays the row writes of lanes whose deadline only moved later. A debounced lane changes with
// every event but is read once, at its end: writing its row and index entry each time would be half of the cost of an
// append. So a commit writes one row that lists the changes, and the lane's own row is written when something reads it.
// Until then the index has the lane too early, never too late. After a crash, the lists restore the lanes.
import { ChurnMap } from '../../churn-map.ts'
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { SqlitePlacements } from './placements.ts'
import { number, text, type Statements } from './statements.ts'

/** The bounds on lanes whose rows are behind, and on the commits to read when the store opens. Beyond them, the
    oldest are written. */
const MAX_DEFERRED_LANES = 2_048
const MAX_DEFERRED_COMMITS = 256

const ADD = 'insert into pushed_back (n, list) values (?, ?)'
const LISTS = 'select n, list from pushed_back order by n'
const FORGET = 'delete from pushed_back where n < ?'

interface DeferredLane {
  readonly lane: Lane
  /** The deadline under which the index has the lane. */
  readonly indexedDue: Millis
  /** The number of the first list with changes that the lane's row does not have. */
  readonly since: number
}

/** `ListedLane` is the entry of one lane in a list. */
interface ListedLane extends Pick<Lane, 'row' | 'tail' | 'waiting' | 'bytes' | 'window' | 'cap' | 'due' | 'ticket'> {
  /** The added placements, in the format of a lane's row. */
  readonly placements: string
}

export class DeferredLaneWrites {
  readonly #sql: Statements
  readonly #placements: SqlitePlacements
  /** In the order in which their rows fell behind. */
  readonly #deferred = new ChurnMap<LaneId, DeferredLane>()
  /** The lanes that the list of this commit must contain. */
  readonly #changed = new Set<LaneId>()
  /** The number of the next list, and of the oldest list still needed. */
  #next = 1
  #first = 1

  constructor(sql: Statements, placements: SqlitePlacements) {
    this.#sql = sql
    this.#placements = placements
  }

  get count(): number {
    return this.#deferred.size
  }

  has(id: LaneId): boolean {
    return this.#deferred.has(id)
  }

  /** `tryDefer` lists the lane instead of writing its row. It returns false if more changed than added placements
      and a later deadline. */
  tryDefer(before: Lane, lane: Lane): boolean {
    const known = this.#deferred.get(lane.id)
    const alarm = known?.indexedDue ?? before.due
    const later = lane.due >= alarm && lane.due < NEVER && lane.tail > before.tail
    if (!later || !this.#placements.hasOnlyAdditions(lane.row)) return false
    this.#deferred.set(lane.id, { lane, indexedDue: alarm, since: known?.since ?? this.#next })
    this.#changed.add(lane.id)
    return true
  }

  /** `remove` forgets a lane whose row was written or removed. */
  remove(id: LaneId): void {
    if (this.#deferred.delete(id)) this.#changed.delete(id)
  }

  all(): readonly Lane[] {
    return Array.from(this.#deferred.values(), ({ lane }) => lane)
  }

  /** `findFirstDue` returns the first real deadline among the deferred lanes of a flow. */
  findFirstDue(flow: string): Millis {
    let first = NEVER
    for (const { lane } of this.#deferred.values()) if (lane.flow === flow) first = Math.min(first, lane.due)
    return first
  }

  /** `findOverdue` returns the lanes that exceed the bounds and must be written now. */
  findOverdue(): readonly Lane[] {
    const lanes: Lane[] = []
    for (const { lane, since } of this.#deferred.values()) {
      if (since > this.#next - MAX_DEFERRED_COMMITS && this.#deferred.size - lanes.length <= MAX_DEFERRED_LANES) break
      lanes.push(lane)
    }
    return lanes
  }

  /** `write` stores the list of this commit. The store calls it last. */
  write(): void {
    if (this.#changed.size > 0) {
      let list = ''
      for (const id of this.#changed) list += (list === '' ? '' : ';') + this.#serializeLane(id)
      this.#sql.run(ADD, this.#next, list)
      this.#changed.clear()
      this.#next++
    }
    const [first] = this.#deferred.values()
    const oldest = first?.since ?? this.#next
    if (oldest === this.#first) return
    this.#sql.run(FORGET, oldest)
    this.#first = oldest
  }

  /** `recover` reads the lists and returns the lanes with their listed changes applied. */
  recover(rowOf: (row: number) => Lane | undefined): readonly Lane[] {
    this.#deferred.clear()
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
      for (const pushed of text(list).split(';')) this.#recoverLane(parseListedLane(pushed), number(n), rowOnce)
    }
    return this.all()
  }

  #recoverLane({ placements, ...pushed }: ListedLane, n: number, rowOf: (row: number) => Lane | undefined): void {
    const inFile = rowOf(pushed.row)
    // The lane was removed, or its row was written later: positions only grow.
    if (inFile === undefined) return
    const known = this.#deferred.get(inFile.id)
    const before = known?.lane ?? inFile
    if (before.tail >= pushed.tail) return
    this.#placements.appendListed(pushed.row, placements)
    const lane = { ...before, ...pushed }
    this.#deferred.set(lane.id, { lane, indexedDue: known?.indexedDue ?? inFile.due, since: known?.since ?? n })
  }

  #serializeLane(id: LaneId): string {
    const lane = this.#deferred.get(id)?.lane
    if (lane === undefined) return ''
    const { row, tail, waiting, bytes, window, cap, due, ticket } = lane
    return `${row},${tail},${waiting},${bytes},${window},${cap},${due},${ticket},${this.#placements.takeAdded(row)}`
  }
}

function parseListedLane(pushed: string): ListedLane {
  const [row = 0, tail = 0, waiting = 0, bytes = 0, window = 0, cap = 0, due = 0, ticket = 0, ...placements] = pushed
    .split(',')
    .map(Number)
  return { row, tail, waiting, bytes, window, cap, due, ticket, placements: placements.join(',') }
}
