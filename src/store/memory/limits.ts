// Limits and their tickets in memory. Those that wait are kept in two orders: who came last, and whose moment is the latest.
import type { Millis } from '../../clock.ts'
import type { LimitState, SlotPage } from '../../model/limit.ts'
import type { LimitTable, TicketRow } from '../rules/tables.ts'

export class MemoryLimits implements LimitTable {
  readonly all: Map<string, LimitState> = new Map()
  readonly #pages = new Map<string, Map<number, SlotPage>>()
  readonly #tickets = new Map<string, TicketRow>()
  readonly #waits = new Map<string, Waits>()

  get(name: string): LimitState | undefined {
    return this.all.get(name)
  }

  put(name: string, state: LimitState): void {
    this.all.set(name, state)
  }

  page(name: string, n: number): SlotPage | undefined {
    return this.#pages.get(name)?.get(n)
  }

  putPage(name: string, n: number, page: SlotPage): void {
    const pages = this.#pages.get(name) ?? new Map<number, SlotPage>()
    this.#pages.set(name, pages.set(n, page))
  }

  dropPages(name: string, before: Millis): void {
    const pages = this.#pages.get(name) ?? new Map<number, SlotPage>()
    for (const [n, { slots }] of pages) if ((slots.at(-1)?.at ?? 0) < before) pages.delete(n)
  }

  forget(now: Millis): void {
    for (const [name, state] of this.all) {
      if (state.idleAt > now) continue
      this.all.delete(name)
      this.#pages.delete(name)
    }
  }

  ticket(ticket: string): TicketRow | undefined {
    return this.#tickets.get(ticket)
  }

  putTicket(row: TicketRow): void {
    this.removeTicket(row.ticket)
    this.#tickets.set(row.ticket, row)
    if (row.used) return
    for (const { name } of row.limits) {
      const waits = this.#waits.get(name) ?? new Waits()
      this.#waits.set(name, waits)
      waits.add(row)
    }
  }

  removeTicket(ticket: string): void {
    const row = this.#tickets.get(ticket)
    if (row === undefined) return
    this.#tickets.delete(ticket)
    if (row.used) return
    for (const { name } of row.limits) {
      const waits = this.#waits.get(name)
      waits?.remove(row)
      if (waits?.byOrder.length === 0) this.#waits.delete(name)
    }
  }

  unused(name: string, upto: Millis): readonly TicketRow[] {
    return (this.#waits.get(name)?.byOrder ?? []).filter((row) => row.at <= upto)
  }

  lastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined {
    const waits = this.#waits.get(name)
    const newest = waits?.byOrder.at(-1)
    return newest === undefined ? undefined : { ticket: newest.ticket, at: waits?.byMoment.at(-1)?.at ?? 0 }
  }

  ticketsBefore(moment: Millis, n: number): readonly TicketRow[] {
    return [...this.#tickets.values()].filter((row) => row.at <= moment).slice(0, n)
  }
}

class Waits {
  readonly byOrder: TicketRow[] = []
  readonly byMoment: TicketRow[] = []

  add(row: TicketRow): void {
    this.remove(row)
    this.byOrder.splice(placeOf(this.byOrder, row, inOrder), 0, row)
    this.byMoment.splice(placeOf(this.byMoment, row, inTime), 0, row)
  }

  remove(row: TicketRow): void {
    const first = placeOf(this.byOrder, row, inOrder)
    if (this.byOrder[first]?.order === row.order) this.byOrder.splice(first, 1)
    const second = placeOf(this.byMoment, row, inTime)
    if (this.byMoment[second]?.order === row.order) this.byMoment.splice(second, 1)
  }
}

type Comparison = (one: TicketRow, other: TicketRow) => number

const inOrder: Comparison = (one, other) => one.order - other.order
const inTime: Comparison = (one, other) => one.at - other.at || one.order - other.order

/** Where the row is, or would be. */
function placeOf(rows: readonly TicketRow[], row: TicketRow, compare: Comparison): number {
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
