// Runs that have just begun. Most end a few turns later, and many lanes with them: writing the lane first, with its lease, and
// again a moment later would be half of the work of a short run. So a turn writes one row that lists the runs that have begun
// lately; the lane of a run that goes on for longer is written then. After a crash the list says what had begun: a run that was
// in progress is known, keeps its id, and its lapse counts (L12).
import { BusyMap } from '../../busy-map.ts'
import { NEVER, type Millis } from '../../clock.ts'
import type { Turn } from '../../model/claim.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane, Line } from '../../model/lane.ts'
import { text, type Statements } from './statements.ts'

/** Enough to do the transition again from the lane as the file has it. */
interface Begun {
  readonly lane: LaneId
  /** The ticket of the lane before: with any other the list is out of date for it. */
  readonly ticket: number
  /** The last place that the run took. */
  readonly upto: number
  readonly run: string
  readonly token: number
  readonly nextTicket: number
  readonly started: Millis
  readonly until: Millis
}

interface Entry extends Begun {
  readonly row: number
  readonly flow: string
  readonly line: Line
  /** The number of the commit in which it began. */
  readonly since: number
}

/** So many commits a run is only listed: the list is written whole. */
const LISTED_FOR = 16

export class BegunRuns {
  readonly #sql: Statements
  readonly #entries = new BusyMap<number, Entry>()
  /** Whether the list in the file lacks some. */
  isNew = false
  #commit = 0

  constructor(sql: Statements) {
    this.#sql = sql
  }

  get count(): number {
    return this.#entries.size
  }

  has(row: number): boolean {
    return this.#entries.has(row)
  }

  add(before: Lane, lane: Lane): void {
    if (lane.run === undefined) return
    const { id, token, upto, started, until } = lane.run
    this.#entries.set(lane.row, {
      lane: lane.id,
      ticket: before.ticket,
      upto,
      run: id,
      token,
      nextTicket: lane.ticket,
      started,
      until,
      row: lane.row,
      flow: lane.flow,
      line: before.line,
      since: this.#commit,
    })
    this.isNew = true
  }

  /** Its lane was written or removed. */
  ended(row: number): void {
    this.#entries.delete(row)
  }

  /** How many lanes of the line still stand in the index as if nothing had begun. */
  inLine(flow: string, line: Line): number {
    let count = 0
    for (const entry of this.#entries.values()) if (entry.flow === flow && entry.line === line) count++
    return count
  }

  /** When the first lease of the flow ends that is only listed here. */
  firstEnd(flow: string): Millis {
    let first = NEVER
    for (const entry of this.#entries.values()) if (entry.flow === flow) first = Math.min(first, entry.until)
    return first
  }

  /** Those of the flow, or all, to be written one by one. */
  take(flow: string | undefined): readonly LaneId[] {
    return this.#take((entry) => flow === undefined || entry.flow === flow)
  }

  /** Those of the flow that have been listed for long, or whose lease is over. */
  takeOld(flow: string, now: Millis): readonly LaneId[] {
    const isOld = ({ since, until }: Entry): boolean => this.#commit - since >= LISTED_FOR || until <= now
    return this.#take((entry) => entry.flow === flow && isOld(entry))
  }

  #take(goes: (entry: Entry) => boolean): readonly LaneId[] {
    if (this.#entries.size === 0) return []
    const taken = [...this.#entries.values()].filter(goes)
    for (const entry of taken) this.#entries.delete(entry.row)
    return taken.map((entry) => entry.lane)
  }

  /** With each commit. */
  write(): void {
    this.#commit++
    if (!this.isNew) return
    let list = ''
    let times = ''
    for (const { lane, ticket, upto, run, token, nextTicket, started, until } of this.#entries.values()) {
      // Those of one turn have their times in common: the first says them.
      const own = `${started},${until}`
      list += `${list === '' ? '' : ';'}${lane},${ticket},${upto},${run},${token},${nextTicket}${own === times ? '' : `,${own}`}`
      times = own
    }
    this.#sql.set(`update meta set value = ? where name = 'begun'`, list)
    this.isNew = false
  }

  read(): readonly { readonly begun: Begun; readonly turn: Turn }[] {
    this.#entries.clear()
    const list = text(this.#sql.get(`select value from meta where name = 'begun'`)?.[0] ?? '')
    if (list === '') return []
    let times: readonly [started: Millis, until: Millis] = [0, 0]
    return list.split(';').map((one) => {
      const [lane = '', ticket, upto, run = '', token, next, started, until] = one.split(',')
      if (started !== undefined) times = [Number(started), Number(until)]
      const numbers = { ticket: Number(ticket), upto: Number(upto), token: Number(token), nextTicket: Number(next) }
      const begun: Begun = { lane, run, ...numbers, started: times[0], until: times[1] }
      const caps = { lease: begun.until - begun.started, take: 'all', maxEvents: NEVER, maxBytes: NEVER } as const
      return { begun, turn: { now: begun.started, token: begun.token, caps, draw: () => begun.nextTicket } }
    })
  }
}
