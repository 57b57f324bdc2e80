// `NewRuns` lists the runs that have just begun. Most of them, and many of their lanes, end a few claims later: writing
// the lane with its lease, and again soon after, would be half of the cost of a short run. So each commit writes one
// row that lists the new runs, and a lane is written only if its run goes on for longer. After a crash, the list tells
// which runs were in progress: such a run keeps its id, and its lapse counts (L12).
import { ChurnMap } from '../../churn-map.ts'
import { NEVER, type Millis } from '../../clock.ts'
import type { ClaimContext } from '../../model/claim.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane, LaneHealth } from '../../model/lane.ts'
import { text, type Statements } from './statements.ts'

/** `NewRun` holds what it takes to repeat the claim on the lane as the file has it. */
interface NewRun {
  readonly lane: LaneId
  /** The ticket of the lane before the claim. If the lane has another ticket, this entry is out of date. */
  readonly ticket: number
  /** The position of the last placement that the run took. */
  readonly upto: number
  readonly run: string
  readonly token: number
  readonly nextTicket: number
  readonly started: Millis
  readonly until: Millis
}

interface NewRunEntry extends NewRun {
  readonly row: number
  readonly flow: string
  readonly health: LaneHealth
  /** The number of the commit in which the run began. */
  readonly since: number
}

/** The most commits for which a run is only listed: each commit writes the whole list. */
const MAX_COMMITS_LISTED = 16

export class NewRuns {
  readonly #sql: Statements
  readonly #entries = new ChurnMap<number, NewRunEntry>()
  /** Whether the list in the file is out of date. */
  isDirty = false
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
      health: before.health,
      since: this.#commit,
    })
    this.isDirty = true
  }

  /** `remove` forgets a lane that was written or removed. */
  remove(row: number): void {
    this.#entries.delete(row)
  }

  /** `countInQueue` returns how many index entries of the queue belong to lanes that have in fact begun a run. */
  countInQueue(flow: string, health: LaneHealth): number {
    let count = 0
    for (const entry of this.#entries.values()) if (entry.flow === flow && entry.health === health) count++
    return count
  }

  /** `findFirstLeaseEnd` returns the first lease end among the listed runs of the flow. */
  findFirstLeaseEnd(flow: string): Millis {
    let first = NEVER
    for (const entry of this.#entries.values()) if (entry.flow === flow) first = Math.min(first, entry.until)
    return first
  }

  /** `take` removes the entries of the flow, or all, and returns their lanes, which the caller must write. */
  take(flow: string | undefined): readonly LaneId[] {
    return this.#take((entry) => flow === undefined || entry.flow === flow)
  }

  /** `takeOld` removes the entries of the flow that were listed for long or whose lease has expired. */
  takeOld(flow: string, now: Millis): readonly LaneId[] {
    const isOld = ({ since, until }: NewRunEntry): boolean => this.#commit - since >= MAX_COMMITS_LISTED || until <= now
    return this.#take((entry) => entry.flow === flow && isOld(entry))
  }

  #take(goes: (entry: NewRunEntry) => boolean): readonly LaneId[] {
    if (this.#entries.size === 0) return []
    const taken = [...this.#entries.values()].filter(goes)
    for (const entry of taken) this.#entries.delete(entry.row)
    return taken.map((entry) => entry.lane)
  }

  /** `write` is called with each commit. */
  write(): void {
    this.#commit++
    if (!this.isDirty) return
    let list = ''
    let times = ''
    for (const { lane, ticket, upto, run, token, nextTicket, started, until } of this.#entries.values()) {
      // Runs of one claim share their times: an entry omits times equal to the previous ones.
      const own = `${started},${until}`
      list += `${list === '' ? '' : ';'}${lane},${ticket},${upto},${run},${token},${nextTicket}${own === times ? '' : `,${own}`}`
      times = own
    }
    this.#sql.runUnordered(`update meta set value = ? where name = 'begun'`, list)
    this.isDirty = false
  }

  recover(): readonly { readonly begun: NewRun; readonly turn: ClaimContext }[] {
    this.#entries.clear()
    const list = text(this.#sql.get(`select value from meta where name = 'begun'`)?.[0] ?? '')
    if (list === '') return []
    let times: readonly [started: Millis, until: Millis] = [0, 0]
    return list.split(';').map((one) => {
      const [lane = '', ticket, upto, run = '', token, next, started, until] = one.split(',')
      if (started !== undefined) times = [Number(started), Number(until)]
      const numbers = { ticket: Number(ticket), upto: Number(upto), token: Number(token), nextTicket: Number(next) }
      const begun: NewRun = { lane, run, ...numbers, started: times[0], until: times[1] }
      const caps = { lease: begun.until - begun.started, take: 'all', maxEvents: NEVER, maxBytes: NEVER } as const
      return { begun, turn: { now: begun.started, token: begun.token, caps, draw: () => begun.nextTicket } }
    })
  }
}
