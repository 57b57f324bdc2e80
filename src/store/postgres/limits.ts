// `PostgresLimits` holds the limits of a transaction and their tickets. It locks a limit whether or not the limit has a row, so
// callers that want a slot queue behind each other.
import type { Millis } from '../../clock.ts'
import type { LimitState, SlotPage } from '../../model/limit.ts'
import type { LimitTable, TicketRow } from '../core/tables.ts'
import type { AdvisoryLocks } from './locks.ts'
import {
  bindJson,
  buildDelete,
  buildUpsert,
  CachedTable,
  each,
  QueryCache,
  RowCache,
  type Db,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { parseLimitState, TICKET_COLUMNS, toTicketRow } from '../sql/rows.ts'
import { escapeText, number, postgresCells, text, type Row } from './values.ts'

const PUT_TICKET = buildUpsert('tickets', TICKET_COLUMNS, 'ticket')
const PUT_WAIT = buildUpsert('waits', 'name, ord, at, ticket', 'name, ord')
const PUT_LIMIT = buildUpsert('limits', 'name, idle_at, state', 'name')
const PUT_PAGE = buildUpsert('limit_pages', 'name, n, upto, page', 'name, n')
const TICKETS_BY_NAME = `select ${TICKET_COLUMNS} from tickets where ticket = any($1)`
const UNUSED = `select t.ticket, t.ord, t.at, t.used, t.limits from waits w join tickets t on t.ticket = w.ticket
  where w.name = $1 order by w.ord`
const PAGES = 'select n, page from limit_pages where name = $1 and n > $2 and n <= $3'
const BEFORE = `select ${TICKET_COLUMNS} from tickets where at <= $1 order by at limit $2 for update skip locked`

export class PostgresLimits extends CachedTable implements LimitTable {
  readonly #locks: AdvisoryLocks
  readonly #limits = new RowCache<LimitState>(async (db, names) => {
    const rows = await db.query('select name, state from limits where name = any($1)', [names.map(escapeText)])
    return rows.map(([name, state]) => [text(name), parseLimitState(String(state))])
  })
  readonly #pages = new RowCache<SlotPage>(async (db, keys) =>
    (await Promise.all(keys.map((key) => this.#loadPages(db, key)))).flat(),
  )
  readonly #tickets = new RowCache<TicketRow>(async (db, tickets) =>
    toEntries(await db.query(TICKETS_BY_NAME, [tickets.map(escapeText)])),
  )
  /** The limits whose waiting tickets are all loaded. */
  readonly #waits = new QueryCache(
    each(async (db, name: string) => this.#tickets.addLoaded(toEntries(await db.query(UNUSED, [escapeText(name)])))),
  )
  readonly #before = new QueryCache(
    each(async (db, at: Millis, n: number) => this.#tickets.addLoaded(toEntries(await db.query(BEFORE, [at, n])))),
  )
  protected readonly caches: readonly TransactionCache[] = [
    this.#limits,
    this.#pages,
    this.#tickets,
    this.#waits,
    this.#before,
  ]
  readonly #removedPages = new Map<string, Millis>()
  /** The unused tickets of each limit, as the rules have left them. Built when first needed. */
  #unused: Map<string, Map<string, TicketRow>> | undefined
  /** How many pages of each limit the last load fetched at once. */
  readonly #pagesAtOnce = new Map<string, number>()
  #idleBefore: Millis | undefined

  constructor(locks: AdvisoryLocks) {
    super()
    this.#locks = locks
  }

  get(name: string): LimitState | undefined {
    this.#locks.require(`limit/${getBucket(name)}`)
    return this.#limits.get(name)
  }

  put(name: string, state: LimitState): void {
    this.#limits.put(name, state)
  }

  getPage(name: string, n: number): SlotPage | undefined {
    return this.#pages.get(pageKey(name, n))
  }

  putPage(name: string, n: number, page: SlotPage): void {
    this.#pages.put(pageKey(name, n), page)
  }

  removePagesBefore(name: string, before: Millis): void {
    this.#removedPages.set(name, before)
  }

  forgetIdle(now: Millis): void {
    this.#idleBefore = now
  }

  getTicket(ticket: string): TicketRow | undefined {
    return this.#tickets.get(ticket)
  }

  putTicket(row: TicketRow): void {
    this.#removeWait(row.ticket)
    this.#tickets.put(row.ticket, row)
    this.#addWait(row)
  }

  removeTicket(ticket: string): void {
    // The ticket must be loaded before its removal, because it also waits under each of its limits.
    this.#tickets.get(ticket)
    this.#removeWait(ticket)
    this.#tickets.remove(ticket)
  }

  findUnused(name: string, upto: Millis): readonly TicketRow[] {
    return this.#findWaiting(name)
      .filter((row) => row.at <= upto)
      .toSorted((one, other) => one.order - other.order)
  }

  findLastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined {
    const waiting = this.#findWaiting(name)
    const newest = waiting.reduce<TicketRow | undefined>(
      (last, row) => (last === undefined || row.order > last.order ? row : last),
      undefined,
    )
    if (newest === undefined) return undefined
    return { ticket: newest.ticket, at: waiting.reduce((latest, row) => Math.max(latest, row.at), 0) }
  }

  #findWaiting(name: string): readonly TicketRow[] {
    this.#waits.get(name)
    if (this.#unused === undefined) {
      this.#unused = new Map()
      for (const row of this.#tickets.values()) this.#addWait(row)
    }
    return [...(this.#unused.get(name)?.values() ?? [])]
  }

  #addWait(row: TicketRow): void {
    if (row.used || this.#unused === undefined) return
    for (const { name } of row.limits) {
      const tickets = this.#unused.get(name) ?? new Map<string, TicketRow>()
      this.#unused.set(name, tickets.set(row.ticket, row))
    }
  }

  #removeWait(ticket: string): void {
    if (this.#unused === undefined) return
    for (const { name } of this.#tickets.get(ticket)?.limits ?? []) this.#unused.get(name)?.delete(ticket)
  }

  findTicketsBefore(at: Millis, n: number): readonly TicketRow[] {
    return (this.#before.get(at, n) ?? []).flatMap((ticket) => this.#tickets.get(ticket) ?? [])
  }

  override resetPass(): void {
    super.resetPass()
    this.#removedPages.clear()
    this.#unused = undefined
    this.#idleBefore = undefined
  }

  /**
   * `#loadPages` also loads the pages before, twice as many with each load. Most calls need one page, but calls that need many
   * must not load them one by one.
   */
  async #loadPages(db: Db, key: string): Promise<readonly (readonly [string, SlotPage | undefined])[]> {
    const [name, n] = parsePageKey(key)
    const most = this.#pagesAtOnce.get(name) ?? 1
    this.#pagesAtOnce.set(name, 2 * most)
    const found = await db.query(PAGES, [escapeText(name), n - most, n])
    return [
      ...Array.from({ length: most }, (_, at) => [pageKey(name, n - at), undefined] as const),
      ...found.map(([page, slots]) => [pageKey(name, number(page)), JSON.parse(String(slots)) as SlotPage] as const),
    ]
  }

  buildWrites(): readonly Statement[] {
    const limits = [...this.#limits.changes].flatMap(([name, state]) =>
      state === undefined
        ? []
        : [{ name: escapeText(name), idle_at: Math.ceil(state.idleAt), state: JSON.stringify(state) }],
    )
    const pages = [...this.#pages.changes].flatMap(([key, page]) => {
      const [name, n] = parsePageKey(key)
      return page === undefined
        ? []
        : [{ name: escapeText(name), n, upto: page.slots.at(-1)?.at ?? 0, page: JSON.stringify(page) }]
    })
    const removedPages = [...this.#removedPages].map(([name, before]): Statement => [
      'delete from limit_pages where name = $1 and upto < $2',
      [escapeText(name), before],
    ])
    const idle = this.#idleBefore
    return [
      ...removedPages,
      ...bindJson(PUT_LIMIT, limits),
      ...bindJson(PUT_PAGE, pages),
      ...this.#buildTicketWrites(),
      ...(idle === undefined ? [] : [IDLE_PAGES, IDLE].map((sql): Statement => [sql, [idle]])),
    ]
  }

  #buildTicketWrites(): readonly Statement[] {
    const { changes, changedRows: kept, removedKeys: removed } = this.#tickets
    const oldWaits = [...changes.keys()].flatMap((ticket) => toWaitColumns(this.#tickets.stored(ticket)))
    const rows = kept.map(({ ticket, order, at, used, limits }) => ({
      ticket: escapeText(ticket),
      ord: order,
      at,
      used,
      limits: JSON.stringify(limits),
    }))
    const deleteWaits: Statement = [DELETE_WAITS, [oldWaits.map((wait) => wait.name), oldWaits.map((wait) => wait.ord)]]
    return [
      ...buildDelete('tickets where ticket', removed.map(escapeText)),
      ...bindJson(PUT_TICKET, rows),
      ...(oldWaits.length > 0 ? [deleteWaits] : []),
      ...bindJson(PUT_WAIT, kept.flatMap(toWaitColumns)),
    ]
  }
}

/** Limits share this many locks. A call may use the limits of a thousand keys, and a server has room for few locks. */
const BUCKETS = 256

function getBucket(name: string): number {
  let mixed = 0
  for (let at = 0; at < name.length; at++) mixed = (Math.imul(mixed, 31) + name.charCodeAt(at)) >>> 0
  return mixed % BUCKETS
}

const IDLE_PAGES = 'delete from limit_pages where name in (select name from limits where idle_at <= $1)'
const IDLE = 'delete from limits where idle_at <= $1'
const DELETE_WAITS =
  'delete from waits w using unnest($1::text[], $2::bigint[]) as g (name, ord) where w.name = g.name and w.ord = g.ord'

function toWaitColumns(
  row: TicketRow | undefined,
): readonly { name: string; ord: number; at: number; ticket: string }[] {
  if (row === undefined || row.used) return []
  return row.limits.map(({ name }) => ({
    name: escapeText(name),
    ord: row.order,
    at: row.at,
    ticket: escapeText(row.ticket),
  }))
}

function toEntries(rows: readonly Row[]): readonly (readonly [ticket: string, row: TicketRow])[] {
  return rows.map((row) => toTicketRow(postgresCells, row)).map((row) => [row.ticket, row])
}

function pageKey(name: string, n: number): string {
  return JSON.stringify([name, n])
}

function parsePageKey(key: string): readonly [name: string, n: number] {
  return JSON.parse(key) as [string, number]
}
