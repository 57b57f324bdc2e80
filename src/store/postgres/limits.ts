// Limits and their tickets in a transaction. A limit is locked, whether or not it has a row: whoever wants one of its slots
// stands behind the others.
import type { Millis } from '../../clock.ts'
import { FRESH_LIMIT, type LimitState, type SlotPage } from '../../model/limit.ts'
import type { LimitTable, TicketRow } from '../rules/tables.ts'
import type { Locks } from './locks.ts'
import { deleteBy, Keyed, Questions, upsert, withJson, type Db, type Part, type Statement } from './part.ts'
import { number, text, written, type Row } from './values.ts'

const TICKET = ['ticket', 'ord', 'at', 'used', 'limits']
const TICKETS = TICKET.join(', ')
const PUT_TICKET = upsert('tickets', TICKET, ['ticket'])
const PUT_WAIT = upsert('waits', ['name', 'ord', 'at', 'ticket'], ['name', 'ord'])
const PUT_LIMIT = upsert('limits', ['name', 'idle_at', 'state'], ['name'])
const PUT_PAGE = upsert('limit_pages', ['name', 'n', 'upto', 'page'], ['name', 'n'])
const TICKETS_BY_NAME = `select ${TICKETS} from tickets where ticket = any($1)`
const UNUSED = `select ${TICKET.map((column) => `t.${column}`).join(', ')} from waits w join tickets t on t.ticket = w.ticket
  where w.name = $1 order by w.ord`
const BEFORE = `select ${TICKETS} from tickets where at <= $1 order by at limit $2 for update skip locked`

export class PostgresLimits implements LimitTable, Part {
  readonly #locks: Locks
  readonly #limits = new Keyed<LimitState>()
  readonly #pages = new Keyed<SlotPage>()
  readonly #tickets = new Keyed<TicketRow>()
  /** All tickets that wait for these are known. */
  readonly #waits = new Set<string>()
  readonly #lacksWaits = new Set<string>()
  readonly #before = new Questions<[at: Millis, n: number], readonly string[]>()
  readonly #dropped = new Map<string, Millis>()
  #forgetBefore: Millis | undefined

  constructor(locks: Locks) {
    this.#locks = locks
  }

  get(name: string): LimitState | undefined {
    this.#locks.hold(`limit/${bucketOf(name)}`)
    return this.#limits.get(name)
  }

  put(name: string, state: LimitState): void {
    this.#limits.put(name, state)
  }

  page(name: string, n: number): SlotPage | undefined {
    return this.#pages.get(JSON.stringify([name, n]))
  }

  putPage(name: string, n: number, page: SlotPage): void {
    this.#pages.put(JSON.stringify([name, n]), page)
  }

  dropPages(name: string, before: Millis): void {
    this.#dropped.set(name, before)
  }

  forget(now: Millis): void {
    this.#forgetBefore = now
  }

  ticket(ticket: string): TicketRow | undefined {
    return this.#tickets.get(ticket)
  }

  putTicket(row: TicketRow): void {
    this.#tickets.put(row.ticket, row)
  }

  removeTicket(ticket: string): void {
    // Known before it goes: it waits in more places than its own row.
    this.#tickets.get(ticket)
    this.#tickets.remove(ticket)
  }

  unused(name: string, upto: Millis): readonly TicketRow[] {
    return this.#waiting(name)
      .filter((row) => row.at <= upto)
      .toSorted((one, other) => one.order - other.order)
  }

  lastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined {
    const waiting = this.#waiting(name)
    const newest = waiting.reduce<TicketRow | undefined>(
      (last, row) => (last === undefined || row.order > last.order ? row : last),
      undefined,
    )
    if (newest === undefined) return undefined
    return { ticket: newest.ticket, at: waiting.reduce((latest, row) => Math.max(latest, row.at), 0) }
  }

  #waiting(name: string): readonly TicketRow[] {
    if (!this.#waits.has(name)) this.#lacksWaits.add(name)
    return [...this.#tickets.values()].filter((row) => !row.used && row.limits.some((limit) => limit.name === name))
  }

  ticketsBefore(at: Millis, n: number): readonly TicketRow[] {
    return (this.#before.ask(at, n) ?? []).flatMap((ticket) => this.#tickets.get(ticket) ?? [])
  }

  again(): void {
    for (const rows of [this.#limits, this.#pages, this.#tickets, this.#before]) rows.again()
    this.#lacksWaits.clear()
    this.#dropped.clear()
    this.#forgetBefore = undefined
  }

  get isLacking(): boolean {
    const parts = [this.#limits, this.#pages, this.#tickets, this.#before]
    return parts.some((part) => part.isLacking) || this.#lacksWaits.size > 0
  }

  async load(db: Db): Promise<void> {
    const names = this.#limits.lacking()
    const tickets = this.#tickets.lacking()
    const waits = [...this.#lacksWaits]
    for (const name of names) this.#limits.load(name, undefined)
    for (const ticket of tickets) this.#tickets.load(ticket, undefined)
    for (const name of waits) this.#waits.add(name)
    this.#lacksWaits.clear()
    await Promise.all([
      names.length > 0 ? this.#loadLimits(db, names) : undefined,
      ...this.#pages.lacking().map((key) => this.#loadPage(db, key)),
      tickets.length > 0
        ? db.rows(TICKETS_BY_NAME, [tickets.map(written)]).then((rows) => this.#loadRows(rows))
        : undefined,
      ...waits.map((name) => db.rows(UNUSED, [written(name)]).then((rows) => this.#loadRows(rows))),
      this.#before.load(async (at, n) => this.#loadRows(await db.rows(BEFORE, [at, n]))),
    ])
  }

  async #loadLimits(db: Db, names: readonly string[]): Promise<void> {
    for (const [name, state] of await db.rows('select name, state from limits where name = any($1)', [
      names.map(written),
    ])) {
      this.#limits.load(text(name), { ...FRESH_LIMIT, ...(JSON.parse(String(state)) as LimitState) })
    }
  }

  async #loadPage(db: Db, key: string): Promise<void> {
    const [name, n] = JSON.parse(key) as [string, number]
    const [row] = await db.rows('select page from limit_pages where name = $1 and n = $2', [written(name), n])
    this.#pages.load(key, row === undefined ? undefined : (JSON.parse(String(row[0])) as SlotPage))
  }

  #loadRows(rows: readonly Row[]): readonly string[] {
    return rows.map((row) => {
      const ticket = ticketOf(row)
      this.#tickets.load(ticket.ticket, ticket)
      return ticket.ticket
    })
  }

  writes(): readonly Statement[] {
    const limits = [...this.#limits.changes].flatMap(([name, state]) =>
      state === undefined
        ? []
        : [{ name: written(name), idle_at: Math.ceil(state.idleAt), state: JSON.stringify(state) }],
    )
    const pages = [...this.#pages.changes].flatMap(([key, page]) => {
      const [name, n] = JSON.parse(key) as [string, number]
      return page === undefined
        ? []
        : [{ name: written(name), n, upto: page.slots.at(-1)?.at ?? 0, page: JSON.stringify(page) }]
    })
    const dropped = [...this.#dropped].map(([name, before]): Statement => [
      'delete from limit_pages where name = $1 and upto < $2',
      [written(name), before],
    ])
    const idle = this.#forgetBefore
    return [
      ...dropped,
      ...withJson(PUT_LIMIT, limits),
      ...withJson(PUT_PAGE, pages),
      ...this.#ticketWrites(),
      ...(idle === undefined ? [] : [IDLE_PAGES, IDLE].map((sql): Statement => [sql, [idle]])),
    ]
  }

  #ticketWrites(): readonly Statement[] {
    const { changes, kept, removed } = this.#tickets
    const left = [...changes.keys()].flatMap((ticket) => waitsOf(this.#tickets.stored(ticket)))
    const rows = kept.map(({ ticket, order, at, used, limits }) => ({
      ticket: written(ticket),
      ord: order,
      at,
      used,
      limits: JSON.stringify(limits),
    }))
    const waitNoMore: Statement = [WAITS_NO_MORE, [left.map((wait) => wait.name), left.map((wait) => wait.ord)]]
    return [
      ...deleteBy('tickets where ticket', removed.map(written)),
      ...withJson(PUT_TICKET, rows),
      ...(left.length > 0 ? [waitNoMore] : []),
      ...withJson(PUT_WAIT, kept.flatMap(waitsOf)),
    ]
  }
}

/** A call may be for a limit of each of a thousand keys, and a server has room for so many locks only. */
const BUCKETS = 256

function bucketOf(name: string): number {
  let mixed = 0
  for (let at = 0; at < name.length; at++) mixed = (Math.imul(mixed, 31) + name.charCodeAt(at)) >>> 0
  return mixed % BUCKETS
}

const IDLE_PAGES = 'delete from limit_pages where name in (select name from limits where idle_at <= $1)'
const IDLE = 'delete from limits where idle_at <= $1'
const WAITS_NO_MORE =
  'delete from waits w using unnest($1::text[], $2::bigint[]) as g (name, ord) where w.name = g.name and w.ord = g.ord'

function waitsOf(row: TicketRow | undefined): readonly { name: string; ord: number; at: number; ticket: string }[] {
  if (row === undefined || row.used) return []
  return row.limits.map(({ name }) => ({
    name: written(name),
    ord: row.order,
    at: row.at,
    ticket: written(row.ticket),
  }))
}

function ticketOf(row: Row): TicketRow {
  return {
    ticket: text(row[0]),
    order: number(row[1]),
    at: number(row[2]),
    used: row[3] === true,
    limits: JSON.parse(String(row[4])) as TicketRow['limits'],
  }
}
