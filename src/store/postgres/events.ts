// `PostgresEvents` holds the events of a transaction. If two transactions insert the same event at once, the second fails at
// its insert, runs again and finds the event. An event row that was read stays locked until the end.
import type { EventIdentity } from '../../model/identity.ts'
import type { EventToStore, Receipt } from '../contract/index.ts'
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
  buildDelete,
  RowCache,
  QueryCache,
  bindJson,
  type Db,
  type TransactionTable,
  type Statement,
} from './row-cache.ts'
import { toEventRow, toReceipt } from '../sql/rows.ts'
import { escapeText, number, postgresCells, text, type Row } from './values.ts'

const LOCK = 'for update'
const OWNERS = 'select identity, seq from events where identity = any($1)'
const ADD_RECEIPTS = `insert into receipts (event, n, at, kind, id, body_hash)
  select event, n, at, kind, id, body_hash from json_populate_recordset(null::receipts, $1)`
const RECEIPTS_KEPT = 100
const FORGET_RECEIPTS = `delete from receipts r where r.event = any($1) and r.n not in
  (select k.n from receipts k where k.event = r.event order by k.n desc limit ${RECEIPTS_KEPT})`
const WITH_BYTES = `select seq from events where seq = any($1) and purged_hash = ''`
const ARRIVALS = 'select seq, arrived from events where seq > $1 order by seq limit $2'
const GROW = 'update stored_bytes set bytes = bytes + $1 where stripe = pg_backend_pid() % 16'

export class PostgresEvents implements EventTable, TransactionTable {
  readonly #draw: () => number
  readonly #assumeNew: boolean
  readonly #rows = new RowCache<EventRow>()
  readonly #ids = new Map<string, number>()
  /** The stored event of each identity; 0 for none. */
  readonly #owners = new Map<EventIdentity, number>()
  readonly #placed = new Map<number, PlacedEvent | undefined>()
  /** The owners as the rules have left them. */
  readonly #changedOwners = new Map<EventIdentity, number>()
  readonly #changedIds = new Map<string, number>()
  readonly #receipts: { readonly event: number; readonly n: number; readonly receipt: Receipt }[] = []
  readonly #missingIdentities = new Set<EventIdentity>()
  readonly #missingIds = new Set<string>()
  readonly #missingPlaced = new Set<number>()
  readonly #queries = new QueryCache<[sql: string, values: readonly (string | number)[]], readonly number[]>()
  readonly #receiptQueries = new QueryCache<[event: number], readonly Receipt[]>()
  /** Whether each event still has its bytes; the query does not read the bytes. */
  readonly #bodyQueries = new QueryCache<[event: number], boolean>()
  readonly #arrivalQueries = new QueryCache<[after: number, n: number], readonly Pick<EventRow, 'seq' | 'arrived'>[]>()

  /** `areNew` skips the check for known events; if one is known, the transaction fails. */
  constructor(draw: () => number, areNew: boolean) {
    this.#draw = draw
    this.#assumeNew = areNew
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
    this.#changedOwners.set(identity, seq)
    this.#changedIds.set(id, seq)
    return seq
  }

  /** `findOwner` returns 0 if no event has the identity, and undefined if that is not known yet. */
  #findOwner(identity: EventIdentity): number | undefined {
    const owner = this.#changedOwners.get(identity) ?? this.#owners.get(identity) ?? this.#assumedOwner
    if (owner === undefined) this.#missingIdentities.add(identity)
    return owner
  }

  get #assumedOwner(): 0 | undefined {
    return this.#assumeNew ? 0 : undefined
  }

  #findHolder(id: string): number | undefined {
    const known = this.#changedIds.get(id) ?? this.#ids.get(id) ?? this.#assumedOwner
    if (known === undefined) this.#missingIds.add(id)
    return known
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
    return this.#bodyQueries.get(seq) ?? false
  }

  findPlaced(places: readonly PlacementRow[]): readonly PlacedEvent[] {
    return [...new Set(places.map((place) => place.event))].flatMap((seq) => this.#findPlacedEvent(seq) ?? [])
  }

  #findPlacedEvent(seq: number): PlacedEvent | undefined {
    const changed = this.#rows.changes.get(String(seq))
    if (changed !== undefined) return changed.purgedHash === '' ? changed : undefined
    if (this.#rows.changes.has(String(seq))) return undefined
    if (!this.#placed.has(seq)) this.#missingPlaced.add(seq)
    return this.#placed.get(seq)
  }

  /** `addPlaced` stores an event that was loaded together with its lane. */
  addPlaced(event: PlacedEvent): void {
    this.#placed.set(event.seq, event)
  }

  forgetIdentity(seq: number): void {
    const event = this.findBySeq(seq)
    if (event === undefined) return
    this.#changedOwners.set(event.identity, 0)
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

  findByTenant(tenant: string, n: number): readonly EventRow[] {
    const sql = `${SELECT_EVENTS} where tenant = $1 and purged_hash = '' order by seq limit $2 ${LOCK}`
    return this.#readList(sql, [escapeText(tenant), n]).filter((event) => event.purgedHash === '')
  }

  findOldest(after: number, n: number): readonly EventRow[] {
    return this.#readList(`${SELECT_EVENTS} where seq > $1 order by seq limit $2 ${LOCK} skip locked`, [after, n])
  }

  findArrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[] {
    return this.#arrivalQueries.get(after, n) ?? []
  }

  #readList(sql: string, values: readonly (string | number)[]): readonly EventRow[] {
    return (this.#queries.get(sql, values) ?? []).flatMap((seq) => this.findBySeq(seq) ?? [])
  }

  addReceipt(event: number, receipt: Receipt): void {
    this.#receipts.push({ event, n: this.#draw(), receipt })
  }

  findReceipts(seq: number): readonly Receipt[] {
    return this.#receiptQueries.get(seq) ?? []
  }

  remove(seq: number): void {
    const event = this.findBySeq(seq)
    if (event === undefined) return
    this.#rows.remove(String(seq))
    if (event.identity !== '' && this.#findOwner(event.identity) === seq) this.#changedOwners.set(event.identity, 0)
    this.#changedIds.set(event.id, 0)
  }

  resetPass(): void {
    this.#rows.resetPass()
    this.#changedOwners.clear()
    this.#changedIds.clear()
    this.#receipts.length = 0
    for (const lacks of [this.#missingIdentities, this.#missingIds, this.#missingPlaced]) lacks.clear()
    this.#queries.resetPass()
    this.#receiptQueries.resetPass()
    this.#bodyQueries.resetPass()
    this.#arrivalQueries.resetPass()
  }

  get hasMisses(): boolean {
    const sets = [this.#missingIdentities, this.#missingIds, this.#missingPlaced]
    const questions = [this.#rows, this.#queries, this.#receiptQueries, this.#bodyQueries, this.#arrivalQueries]
    return questions.some(({ hasMisses: isLacking }) => isLacking) || sets.some((set) => set.size > 0)
  }

  async load(db: Db): Promise<void> {
    const lock = db.readOnly ? '' : LOCK
    await Promise.all([
      this.#loadOwners(db),
      this.#loadIds(db, lock),
      this.#loadSeqs(db, lock),
      this.#queries.load(async (sql, values) => this.#loadRows(await db.query(sql, values))),
      this.#loadPlaced(db),
      this.#bodyQueries.loadBatch(async (events) => {
        const found = await db.query(WITH_BYTES, [events.map(([seq]) => seq)])
        const seqs = new Set(found.map((row) => number(row[0])))
        return events.map(([seq]) => seqs.has(seq))
      }),
      this.#arrivalQueries.load(async (after, n) => {
        const rows = await db.query(ARRIVALS, [after, n])
        return rows.map((row) => ({ seq: number(row[0]), arrived: number(row[1]) }))
      }),
      this.#receiptQueries.load(async (event) => {
        const rows = await db.query('select at, kind, id, body_hash from receipts where event = $1 order by n', [event])
        return rows.map((row) => toReceipt(postgresCells, row))
      }),
    ])
  }

  async #loadOwners(db: Db): Promise<void> {
    const identities = [...this.#missingIdentities]
    this.#missingIdentities.clear()
    if (identities.length === 0) return
    for (const identity of identities) this.#owners.set(identity, 0)
    for (const [identity, seq] of await db.query(OWNERS, [identities])) this.#owners.set(text(identity), number(seq))
  }

  async #loadIds(db: Db, lock: string): Promise<void> {
    const ids = [...this.#missingIds]
    this.#missingIds.clear()
    if (ids.length === 0) return
    for (const id of ids) this.#ids.set(id, 0)
    this.#loadRows(await db.query(`${SELECT_EVENTS} where id = any($1) order by seq ${lock}`, [ids.map(escapeText)]))
  }

  async #loadSeqs(db: Db, lock: string): Promise<void> {
    const seqs = this.#rows.takeMisses()
    if (seqs.length === 0) return
    for (const seq of seqs) this.#rows.load(seq, undefined)
    this.#loadRows(await db.query(`${SELECT_EVENTS} where seq = any($1) order by seq ${lock}`, [seqs.map(Number)]))
  }

  async #loadPlaced(db: Db): Promise<void> {
    const wanted = [...this.#missingPlaced]
    this.#missingPlaced.clear()
    if (wanted.length === 0) return
    for (const seq of wanted) this.#placed.set(seq, undefined)
    for (const row of await db.query(SELECT_PLACED_EVENTS, [wanted])) {
      const event = toPlacedEvent(row)
      this.#placed.set(event.seq, event)
    }
  }

  #loadRows(rows: readonly Row[]): readonly number[] {
    return rows.map((row) => {
      const event = toEventRow(postgresCells, row)
      this.#rows.load(String(event.seq), event)
      this.#ids.set(event.id, event.seq)
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
