// `SqliteLimits` stores limits and their tickets as rows. The row of a limit, which each call writes, holds its newest
// slots; pages hold older ones.
import type { Millis } from '../../clock.ts'
import type { LimitState, SlotPage } from '../../model/limit.ts'
import type { LimitTable, TicketRow } from '../core/tables.ts'
import { parseLimitState, TICKET_COLUMNS, toTicketRow } from '../sql/rows.ts'
import { number, sqliteCells, text, type Row, type Statements } from './statements.ts'

export class SqliteLimits implements LimitTable {
  readonly #sql: Statements

  constructor(sql: Statements) {
    this.#sql = sql
  }

  get(name: string): LimitState | undefined {
    const row = this.#sql.get('select state from limits where name = ?', name)
    return row === undefined ? undefined : parseLimitState(text(row[0]))
  }

  put(name: string, state: LimitState): void {
    const values = [name, state.idleAt, JSON.stringify(state)] as const
    this.#sql.run('insert or replace into limits (name, idle_at, state) values (?, ?, ?)', ...values)
  }

  getPage(name: string, n: number): SlotPage | undefined {
    const row = this.#sql.get('select page from limit_pages where name = ? and n = ?', name, n)
    return row === undefined ? undefined : (JSON.parse(text(row[0])) as SlotPage)
  }

  putPage(name: string, n: number, page: SlotPage): void {
    const values = [name, n, page.slots.at(-1)?.at ?? 0, JSON.stringify(page)] as const
    this.#sql.run('insert or replace into limit_pages (name, n, upto, page) values (?, ?, ?, ?)', ...values)
  }

  removePagesBefore(name: string, before: Millis): void {
    this.#sql.run('delete from limit_pages where name = ? and upto < ?', name, before)
  }

  forgetIdle(now: Millis): void {
    this.#sql.run('delete from limit_pages where name in (select name from limits where idle_at <= ?)', now)
    this.#sql.run('delete from limits where idle_at <= ?', now)
  }

  getTicket(ticket: string): TicketRow | undefined {
    return this.#sql.all(`select ${TICKET_COLUMNS} from tickets where ticket = ?`, ticket).map(toTicket)[0]
  }

  putTicket(row: TicketRow): void {
    const { ticket, order, at, used, limits } = row
    const values = [ticket, order, at, used ? 1 : 0, JSON.stringify(limits)] as const
    this.#sql.run(`insert or replace into tickets (${TICKET_COLUMNS}) values (?, ?, ?, ?, ?)`, ...values)
    if (used) this.#removeWaits(row)
    else {
      const waits = 'insert or replace into waits (name, ord, at, ticket) values (?, ?, ?, ?)'
      for (const { name } of limits) this.#sql.run(waits, name, order, at, ticket)
    }
  }

  removeTicket(ticket: string): void {
    const gone = this.#sql.all(`delete from tickets where ticket = ? returning ${TICKET_COLUMNS}`, ticket).map(toTicket)
    for (const row of gone) if (!row.used) this.#removeWaits(row)
  }

  #removeWaits({ order, limits }: TicketRow): void {
    for (const { name } of limits) this.#sql.run('delete from waits where name = ? and ord = ?', name, order)
  }

  findUnused(name: string, upto: Millis): readonly TicketRow[] {
    const columns = 't.ticket, t.ord, t.at, t.used, t.limits'
    const waiting = 'waits w join tickets t on t.ticket = w.ticket where w.name = ? and w.at <= ?'
    return this.#sql.all(`select ${columns} from ${waiting} order by w.ord`, name, upto).map(toTicket)
  }

  findLastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined {
    const newest = this.#sql.get('select ticket from waits where name = ? order by ord desc limit 1', name)
    if (newest === undefined) return undefined
    const latest = this.#sql.get('select max(at) from waits where name = ?', name)
    return { ticket: text(newest[0]), at: number(latest?.[0]) }
  }

  findTicketsBefore(before: Millis, n: number): readonly TicketRow[] {
    return this.#sql.all(`select ${TICKET_COLUMNS} from tickets where at <= ? limit ?`, before, n).map(toTicket)
  }
}

function toTicket(row: Row): TicketRow {
  return toTicketRow(sqliteCells, row)
}
