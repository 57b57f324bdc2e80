// `RedisLimits` holds the limits of a transaction and their tickets. Each reservation changes the row of the limit, so of two
// transactions at the same time one fails its check and decides again.
import type { Millis } from '../../clock.ts'
import type { LimitState, SlotPage } from '../../model/limit.ts'
import type { LimitTable, TicketRow } from '../core/tables.ts'
import { parseLimitState } from '../sql/rows.ts'
import { jsonTable } from './json-table.ts'
import type { RowCache } from './row-cache.ts'
import { TableView, type TableSpec, type TransactionPart } from './table-view.ts'
import { groupRange, IN_GROUP, pad, quote } from './texts.ts'

export interface NamedLimit {
  readonly name: string
  readonly state: LimitState
}

const LIMITS: TableSpec<NamedLimit> = {
  name: 'limits',
  encode: ({ state }) => JSON.stringify(state),
  decode: (text, name) => ({ name, state: parseLimitState(text) }),
  texts: ({ state }) => [`i${pad(Math.ceil(state.idleAt))}`],
}

interface PageRow extends SlotPage {
  readonly name: string
  readonly n: number
}

const PAGES: TableSpec<PageRow> = jsonTable('limit-pages', ({ name, n }) => [`${pageName(name)}${pad(n)}`])
const TICKETS: TableSpec<TicketRow> = jsonTable('tickets', ({ at, used, order, limits }) => [
  `b${pad(at)}`,
  ...(used ? [] : limits.map(({ name }) => `${waitName(name)}${pad(order)}`)),
])

function pageName(name: string): string {
  return `p${quote(name)}${IN_GROUP}`
}

/** The unused tickets of a limit, in their order. */
function waitName(name: string): string {
  return `u${quote(name)}${IN_GROUP}`
}

/** The most limits that one batch of maintenance forgets. */
const MAX_IDLE = 500

export class RedisLimits implements LimitTable {
  readonly view: TableView<NamedLimit>
  readonly #pages: TableView<PageRow>
  readonly #tickets: TableView<TicketRow>

  constructor(prefix: string, cache: RowCache<NamedLimit>) {
    this.view = new TableView(LIMITS, { prefix, cache })
    this.#pages = new TableView(PAGES, { prefix })
    this.#tickets = new TableView(TICKETS, { prefix })
  }

  get parts(): readonly TransactionPart[] {
    return [this.view, this.#pages, this.#tickets]
  }

  get(name: string): LimitState | undefined {
    return this.view.get(name)?.state
  }

  put(name: string, state: LimitState): void {
    this.view.put(name, { name, state })
  }

  getPage(name: string, n: number): SlotPage | undefined {
    return this.#pages.get(toPageKey(name, n))
  }

  putPage(name: string, n: number, page: SlotPage): void {
    this.#pages.put(toPageKey(name, n), { ...page, name, n })
  }

  removePagesBefore(name: string, before: Millis): void {
    // The slots of a page are before those of the next one.
    for (let n = 8; ; n *= 4) {
      const pages = this.#pages.find(groupRange(pageName(name)), n)
      const old = pages.filter(({ slots }) => (slots.at(-1)?.at ?? 0) < before)
      if (old.length === n) continue
      for (const page of old) this.#pages.remove(toPageKey(name, page.n))
      return
    }
  }

  forgetIdle(now: Millis): void {
    for (const { name, state } of this.view.find({ from: 'i', to: `i${pad(now + 1)}` }, MAX_IDLE, {
      isChecked: false,
    })) {
      if (state.idleAt > now) continue
      this.view.remove(name)
      for (const { n } of this.#pages.find(groupRange(pageName(name)), Infinity)) this.#pages.remove(toPageKey(name, n))
    }
  }

  getTicket(ticket: string): TicketRow | undefined {
    return this.#tickets.get(ticket)
  }

  putTicket(row: TicketRow): void {
    this.#tickets.put(row.ticket, row)
  }

  removeTicket(ticket: string): void {
    this.#tickets.remove(ticket)
  }

  findUnused(name: string, upto: Millis): readonly TicketRow[] {
    return this.#tickets.find(groupRange(waitName(name)), Infinity).filter((row) => row.at <= upto)
  }

  findLastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined {
    const waiting = this.#tickets.find(groupRange(waitName(name)), Infinity)
    const newest = waiting.at(-1)
    return newest && { ticket: newest.ticket, at: waiting.reduce((latest, row) => Math.max(latest, row.at), 0) }
  }

  findTicketsBefore(moment: Millis, n: number): readonly TicketRow[] {
    const found = this.#tickets.find({ from: 'b', to: `b${pad(moment + 1)}` }, n, { isChecked: false })
    return found.filter((row) => row.at <= moment)
  }
}

function toPageKey(name: string, n: number): string {
  return `${pad(n)}${name}`
}
