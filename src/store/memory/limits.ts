// `MemoryLimits` holds limits and their tickets in memory. Waiting tickets are kept in two orders: by ticket number and by slot
// time.
import type { Millis } from '../../clock.ts'
import type { LimitState, SlotPage } from '../../model/limit.ts'
import type { LimitTable, TicketRow } from '../core/tables.ts'

export class MemoryLimits implements LimitTable {
  readonly all: Map<string, LimitState> = new Map()
  readonly #pages = new Map<string, Map<number, SlotPage>>()
  readonly #tickets = new Map<string, TicketRow>()
  readonly #queues = new Map<string, TicketQueue>()

  get(name: string): LimitState | undefined {
    return this.all.get(name)
  }

  put(name: string, state: LimitState): void {
    this.all.set(name, state)
  }

  getPage(name: string, n: number): SlotPage | undefined {
    return this.#pages.get(name)?.get(n)
  }

  putPage(name: string, n: number, page: SlotPage): void {
    const pages = this.#pages.get(name) ?? new Map<number, SlotPage>()
    this.#pages.set(name, pages.set(n, page))
  }

  removePagesBefore(name: string, before: Millis): void {
    const pages = this.#pages.get(name) ?? new Map<number, SlotPage>()
    for (const [n, { slots }] of pages) if ((slots.at(-1)?.at ?? 0) < before) pages.delete(n)
  }

  forgetIdle(now: Millis): void {
    for (const [name, state] of this.all) {
      if (state.idleAt > now) continue
      this.all.delete(name)
      this.#pages.delete(name)
    }
  }

  getTicket(ticket: string): TicketRow | undefined {
    return this.#tickets.get(ticket)
  }

  putTicket(row: TicketRow): void {
    this.removeTicket(row.ticket)
    this.#tickets.set(row.ticket, row)
    if (row.used) return
    for (const { name } of row.limits) {
      const waits = this.#queues.get(name) ?? new TicketQueue()
      this.#queues.set(name, waits)
      waits.add(row)
    }
  }

  removeTicket(ticket: string): void {
    const row = this.#tickets.get(ticket)
    if (row === undefined) return
    this.#tickets.delete(ticket)
    if (row.used) return
    for (const { name } of row.limits) {
      const waits = this.#queues.get(name)
      waits?.remove(row)
      if (waits?.byOrder.length === 0) this.#queues.delete(name)
    }
  }

  findUnused(name: string, upto: Millis): readonly TicketRow[] {
    return (this.#queues.get(name)?.byOrder ?? []).filter((row) => row.at <= upto)
  }

  findLastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined {
    const waits = this.#queues.get(name)
    const newest = waits?.byOrder.at(-1)
    return newest === undefined ? undefined : { ticket: newest.ticket, at: waits?.byTime.at(-1)?.at ?? 0 }
  }

  findTicketsBefore(before: Millis, n: number): readonly TicketRow[] {
    return [...this.#tickets.values()].filter((row) => row.at <= before).slice(0, n)
  }
}

class TicketQueue {
  readonly byOrder: TicketRow[] = []
  readonly byTime: TicketRow[] = []

  add(row: TicketRow): void {
    this.remove(row)
    this.byOrder.splice(findInsertIndex(this.byOrder, row, compareByOrder), 0, row)
    this.byTime.splice(findInsertIndex(this.byTime, row, compareByTime), 0, row)
  }

  remove(row: TicketRow): void {
    const first = findInsertIndex(this.byOrder, row, compareByOrder)
    if (this.byOrder[first]?.order === row.order) this.byOrder.splice(first, 1)
    const second = findInsertIndex(this.byTime, row, compareByTime)
    if (this.byTime[second]?.order === row.order) this.byTime.splice(second, 1)
  }
}

type Comparison = (one: TicketRow, other: TicketRow) => number

const compareByOrder: Comparison = (one, other) => one.order - other.order
const compareByTime: Comparison = (one, other) => one.at - other.at || one.order - other.order

/** Returns the index of the row, or the index at which it would be inserted. */
function findInsertIndex(rows: readonly TicketRow[], row: TicketRow, compare: Comparison): number {
  let from = 0
  let to = rows.length
  while (from < to) {
    const middle = (from + to) >> 1
    const other = rows[middle]
    if (other !== undefined && compare(other, row) < 0) from = middle + 1
    else to = middle
  }
  return from
}
