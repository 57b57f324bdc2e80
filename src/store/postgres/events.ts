// `PostgresEvents` holds the events of a transaction. If two transactions insert the same event at once, the second fails at
// its insert, runs again and finds the event. An event row that was read stays locked until the end.
import type { EventIdentity } from '../../model/identity.ts'
import type { EventToStore, PurgeScope, Receipt } from '../contract/index.ts'
import type { EventArrival, EventRow, EventTable, PlacedEvent, PlacementRow } from '../core/tables.ts'
import { bindRows } from './columns.ts'
import {
  buildEventInserts,
  toUpdateColumns,
  SELECT_EVENTS,
  SELECT_PLACED_EVENTS,
  toPlacedEvent,
  UPDATE_EVENTS,
  SET_EVENTS,
  getEventSize,
  WIPE_EVENTS,
} from './event-rows.ts'
import {
  bindJson,
  buildDelete,
  CachedTable,
  each,
  QueryCache,
  RowCache,
  type Db,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { toEventRow, toReceipt } from '../sql/rows.ts'
import { SUBJECT_OF_EVENT } from './records.ts'
import { escapeText, number, postgresCells, text, type Row } from './values.ts'

const LOCK = 'for update'
const lockOf = (db: Db): string => (db.readOnly ? '' : LOCK)
const RECEIPTS = 'select at, kind, id, body_hash from receipts where event = $1 order by n'
const OWNERS = 'select identity, seq from events where identity = any($1)'
const ADD_RECEIPTS = `insert into receipts (event, n, at, kind, id, body_hash)
  select event, n, at, kind, id, body_hash from json_populate_recordset(null::receipts, $1)`
const RECEIPTS_KEPT = 100
const FORGET_RECEIPTS = `delete from receipts r where r.event = any($1) and r.n not in
  (select k.n from receipts k where k.event = r.event order by k.n desc limit ${RECEIPTS_KEPT})`
const WITH_BYTES = `select seq from events where seq = any($1) and purged_hash = ''`
const ARRIVALS = 'select seq, arrived from events where seq > $1 order by seq limit $2'
const GROW = 'update stored_bytes set bytes = bytes + $1 where stripe = pg_backend_pid() % 16'

/** The conditions use the indexes of events. Their parameters begin with the number `first`. */
function toCondition(
  { tenant, subject, id }: PurgeScope,
  first: number,
): { readonly where: string; readonly values: readonly string[] } {
  const given = Object.entries({ subject, tenant, id }).filter(([, value]) => value !== undefined)
  const where = given.map(([name], at) => {
    const parameter = `$${first + at}`
    if (name === 'subject') return ` and ${SUBJECT_OF_EVENT.replaceAll('?', parameter)}`
    return name === 'tenant' ? ` and tenant <> '' and tenant = ${parameter}` : ` and id = ${parameter}`
  })
  return { where: where.join(''), values: given.map(([, value]) => escapeText(String(value))) }
}

export class PostgresEvents extends CachedTable implements EventTable {
  readonly #draw: () => number
  /** The event of each identity, and of each id; 0 for none. */
  readonly #owners = new RowCache<number>(async (db, identities) => {
    const found = new Map(
      (await db.query(OWNERS, [identities])).map(([identity, seq]) => [text(identity), number(seq)]),
    )
    return identities.map((identity) => [identity, found.get(identity) ?? 0])
  })
  readonly #holders = new RowCache<number>(async (db, ids) => {
    for (const id of ids) this.#holders.setLoaded(id, 0)
    const sql = `${SELECT_EVENTS} where id = any($1) order by seq ${lockOf(db)}`
    this.#addRows(await db.query(sql, [ids.map(escapeText)]))
    return []
  })
  readonly #rows = new RowCache<EventRow>(async (db, seqs) => {
    this.#addRows(await db.query(`${SELECT_EVENTS} where seq = any($1) order by seq ${lockOf(db)}`, [seqs.map(Number)]))
    return []
  })
  readonly #lists = new QueryCache(
    each(async (db, sql: string, values: readonly (string | number)[]) => this.#addRows(await db.query(sql, values))),
  )
  readonly #placed = new RowCache<PlacedEvent>(async (db, seqs) => {
    const rows = await db.query(SELECT_PLACED_EVENTS, [seqs.map(Number)])
    return rows.map((row) => toPlacedEvent(row)).map((event) => [String(event.seq), event])
  })
  /** Whether each event still has its bytes; the query does not read the bytes. */
  readonly #hasBody = new QueryCache<[seq: number], boolean>(async (db, events) => {
    const found = new Set((await db.query(WITH_BYTES, [events.flat()])).map((row) => number(row[0])))
    return events.map(([seq]) => found.has(seq))
  })
  readonly #inScope = new QueryCache(
    each(async (db, seqs: readonly number[], scope: PurgeScope) => {
      const { where, values } = toCondition(scope, 2)
      const rows = await db.query(`select seq from events where seq = any($1)${where}`, [seqs, ...values])
      return rows.map((row) => number(row[0]))
    }),
  )
  readonly #arrivals = new QueryCache(
    each(async (db, after: number, n: number) => {
      const rows = await db.query(ARRIVALS, [after, n])
      return rows.map((row) => ({ seq: number(row[0]), arrived: number(row[1]) }))
    }),
  )
  readonly #storedReceipts = new QueryCache(
    each(async (db, event: number) => (await db.query(RECEIPTS, [event])).map((row) => toReceipt(postgresCells, row))),
  )
  protected readonly caches: readonly TransactionCache[] = [
    this.#owners,
    this.#holders,
    this.#rows,
    this.#lists,
    this.#placed,
    this.#hasBody,
    this.#inScope,
    this.#arrivals,
    this.#storedReceipts,
  ]
  readonly #receipts: { readonly event: number; readonly n: number; readonly receipt: Receipt }[] = []

  constructor(draw: () => number) {
    super()
    this.#draw = draw
  }

  insert(event: EventToStore, arrival: EventArrival): number | false {
    const owner = this.#findOwner(event.identity)
    const holder = this.#findHolder(event.id)
    if (owner === undefined || holder === undefined) return this.#draw()
    if (owner !== 0 || holder !== 0) return false
    const seq = this.#draw()
    const { id, identity, source, type, time, tenant, subject, attributes, request, body } = event
    const facts = { id, identity, source, type, time, tenant, subject, attributes, request, body }
    this.#rows.put(String(seq), { ...facts, ...arrival, seq, purgedHash: '', doomed: false })
    this.#owners.put(identity, seq)
    this.#holders.put(id, seq)
    return seq
  }

  /** `#findOwner` returns 0 if no event has the identity, and undefined if that is not known yet. */
  #findOwner(identity: EventIdentity): number | undefined {
    return this.#owners.get(identity)
  }

  #findHolder(id: string): number | undefined {
    return this.#holders.get(id)
  }

  findById(id: string): EventRow | undefined {
    return this.findBySeq(this.#findHolder(id) ?? 0)
  }

  findByIdentity(identity: EventIdentity): EventRow | undefined {
    return this.findBySeq(this.#findOwner(identity) ?? 0)
  }

  findBySeq(seq: number): EventRow | undefined {
    return seq === 0 ? undefined : this.#rows.get(String(seq))
  }

  hasBody(seq: number): boolean {
    const changed = this.#rows.changes.get(String(seq))
    if (changed !== undefined) return changed.purgedHash === ''
    if (this.#rows.changes.has(String(seq))) return false
    return this.#hasBody.get(seq) ?? false
  }

  findPlaced(placements: readonly PlacementRow[]): readonly PlacedEvent[] {
    return [...new Set(placements.map((placement) => placement.event))].flatMap(
      (seq) => this.#findPlacedEvent(seq) ?? [],
    )
  }

  #findPlacedEvent(seq: number): PlacedEvent | undefined {
    const key = String(seq)
    const changed = this.#rows.changes.get(key)
    if (changed !== undefined) return changed.purgedHash === '' ? changed : undefined
    return this.#rows.changes.has(key) ? undefined : this.#placed.get(key)
  }

  forgetIdentity(seq: number): void {
    const event = this.findBySeq(seq)
    if (event === undefined) return
    this.#owners.put(event.identity, 0)
    this.#rows.put(String(seq), { ...event, identity: '' })
  }

  setRouting(seq: number, { lanes, skips }: Pick<EventRow, 'lanes' | 'skips'>): void {
    this.#change(seq, { lanes, skips })
  }

  wipe(seq: number, hash: string): void {
    const none = new Uint8Array()
    this.#change(seq, { body: none, request: none, attributes: '', subject: '', purgedHash: hash, doomed: false })
  }

  doom(seq: number): void {
    this.#change(seq, { doomed: true })
  }

  #change(seq: number, change: Partial<EventRow>): void {
    const event = this.findBySeq(seq)
    if (event !== undefined) this.#rows.put(String(seq), { ...event, ...change })
  }

  findDoomed(after: number, n: number): readonly EventRow[] {
    const sql = `${SELECT_EVENTS} where doomed and seq > $1 order by seq limit $2 ${LOCK} skip locked`
    return this.#readList(sql, [after, n]).filter((event) => event.doomed)
  }

  findInScope(scope: PurgeScope, n: number): readonly EventRow[] {
    const { where, values } = toCondition(scope, 2)
    const sql = `${SELECT_EVENTS} where purged_hash = ''${where} order by seq limit $1 ${LOCK}`
    return this.#readList(sql, [n, ...values]).filter((event) => event.purgedHash === '')
  }

  filterByScope(seqs: readonly number[], scope: PurgeScope): readonly number[] {
    return this.#inScope.get(seqs, scope) ?? []
  }

  findOldest(after: number, n: number): readonly EventRow[] {
    return this.#readList(`${SELECT_EVENTS} where seq > $1 order by seq limit $2 ${LOCK} skip locked`, [after, n])
  }

  findArrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[] {
    return this.#arrivals.get(after, n) ?? []
  }

  #readList(sql: string, values: readonly (string | number)[]): readonly EventRow[] {
    return (this.#lists.get(sql, values) ?? []).flatMap((seq) => this.findBySeq(seq) ?? [])
  }

  addReceipt(event: number, receipt: Receipt): void {
    this.#receipts.push({ event, n: this.#draw(), receipt })
  }

  findReceipts(seq: number): readonly Receipt[] {
    return this.#storedReceipts.get(seq) ?? []
  }

  remove(seq: number): void {
    const event = this.findBySeq(seq)
    if (event === undefined) return
    this.#rows.remove(String(seq))
    if (event.identity !== '' && this.#findOwner(event.identity) === seq) this.#owners.put(event.identity, 0)
    this.#holders.put(event.id, 0)
  }

  override resetPass(): void {
    super.resetPass()
    this.#receipts.length = 0
  }

  #addRows(rows: readonly Row[]): readonly number[] {
    return rows.map((row) => {
      const event = toEventRow(postgresCells, row)
      this.#rows.setLoaded(String(event.seq), event)
      this.#holders.setLoaded(event.id, event.seq)
      return event.seq
    })
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#rows
    const before = (event: EventRow): EventRow | undefined => this.#rows.stored(String(event.seq))
    const fresh = kept.filter((event) => before(event) === undefined)
    const wiped = kept
      .filter((event) => event.purgedHash !== '' && before(event)?.purgedHash === '')
      .map((event) => event.seq)
    const gone = removed.map(Number)
    const changed = kept.filter((event) => before(event) !== undefined)
    return [
      ...buildDelete('events where seq', gone),
      ...buildDelete('receipts where event', [...gone, ...wiped]),
      // Updates run before inserts, because an update may free an identity that an insert takes.
      ...bindRows(UPDATE_EVENTS, SET_EVENTS, changed.map(toUpdateColumns)),
      ...(wiped.length > 0 ? [[WIPE_EVENTS, [wiped]] as const] : []),
      ...buildEventInserts(fresh),
      ...this.#buildReceiptWrites(),
      ...this.#buildSizeWrites(),
    ]
  }

  /**
   * `buildSizeWrites` updates the total size of all stored events. It is kept in stripes, so that writers do not wait for each
   * other.
   */
  #buildSizeWrites(): readonly Statement[] {
    let grown = 0
    for (const [seq, event] of this.#rows.changes) grown += getEventSize(event) - getEventSize(this.#rows.stored(seq))
    return grown === 0 ? [] : [[GROW, [grown]]]
  }

  #buildReceiptWrites(): readonly Statement[] {
    if (this.#receipts.length === 0) return []
    const rows = this.#receipts.map(({ event, n, receipt: { at, kind, event: id, bodyHash } }) => ({
      event,
      n,
      at,
      kind,
      id: escapeText(id),
      body_hash: bodyHash,
    }))
    return [...bindJson(ADD_RECEIPTS, rows), [FORGET_RECEIPTS, [[...new Set(rows.map((row) => row.event))]]]]
  }
}
