// Events in a transaction. Of two who bring the same event at once the second fails when it writes, begins anew and finds it;
// an event whose row was read keeps still until the end.
import type { Identity, LaneId } from '../../model/identity.ts'
import type { NewEvent, Receipt } from '../contract/index.ts'
import type { Arrival, EventRow, EventTable, PlacedEvent, PlaceRow } from '../rules/tables.ts'
import { withRows } from './columns.ts'
import {
  addEvents,
  changesOf,
  eventOf,
  FROM_EVENTS,
  PLACED_EVENTS,
  placedOf,
  receiptOf,
  SET,
  SET_EVENTS,
  sizeOf,
  WIPE,
} from './event-rows.ts'
import { deleteBy, Keyed, Questions, withJson, type Db, type Part, type Statement } from './part.ts'
import { number, text, written, type Row } from './values.ts'

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

export class PostgresEvents implements EventTable, Part {
  readonly #draw: () => number
  readonly #areNew: boolean
  readonly #rows = new Keyed<EventRow>()
  readonly #ids = new Map<string, number>()
  /** Which event has an identity, 0 for none: what the server says. */
  readonly #owners = new Map<Identity, number>()
  readonly #placed = new Map<number, PlacedEvent | undefined>()
  /** As the rules have left them. */
  readonly #owned = new Map<Identity, number>()
  readonly #named = new Map<string, number>()
  readonly #receipts: { readonly event: number; readonly n: number; readonly receipt: Receipt }[] = []
  readonly #lacksIdentities = new Set<Identity>()
  readonly #lacksIds = new Set<string>()
  readonly #lacksPlaced = new Set<number>()
  readonly #lists = new Questions<[sql: string, values: readonly (string | number)[]], readonly number[]>()
  readonly #receiptsOf = new Questions<[event: number], readonly Receipt[]>()
  /** Whether their bytes are here: for that none of these is read. */
  readonly #withBytes = new Questions<[event: number], boolean>()
  readonly #arrivals = new Questions<[after: number, n: number], readonly Pick<EventRow, 'seq' | 'arrived'>[]>()

  /** `areNew`: it is not asked whether those that come are known; if one is, the transaction fails. */
  constructor(draw: () => number, areNew: boolean) {
    this.#draw = draw
    this.#areNew = areNew
  }

  insert(event: NewEvent, arrival: Arrival): number | false {
    const owner = this.#ownerOf(event.identity)
    const holder = this.#holderOf(event.id)
    if (owner === undefined || holder === undefined) return this.#draw()
    if (owner !== 0 || holder !== 0) return false
    const seq = this.#draw()
    const { id, identity, source, type, time, tenant, subject, attributes, request, body } = event
    const facts = { id, identity, source, type, time, tenant, subject, attributes, request, body }
    this.#rows.put(String(seq), { ...facts, ...arrival, seq, purgedHash: '', doomed: false })
    this.#owned.set(identity, seq)
    this.#named.set(id, seq)
    return seq
  }

  /** 0: nobody. Undefined: not known yet. */
  #ownerOf(identity: Identity): number | undefined {
    const owner = this.#owned.get(identity) ?? this.#owners.get(identity) ?? this.#unasked
    if (owner === undefined) this.#lacksIdentities.add(identity)
    return owner
  }

  get #unasked(): 0 | undefined {
    return this.#areNew ? 0 : undefined
  }

  #holderOf(id: string): number | undefined {
    const known = this.#named.get(id) ?? this.#ids.get(id) ?? this.#unasked
    if (known === undefined) this.#lacksIds.add(id)
    return known
  }

  byId(id: string): EventRow | undefined {
    return this.bySeq(this.#holderOf(id) ?? 0)
  }

  byIdentity(identity: Identity): EventRow | undefined {
    return this.bySeq(this.#ownerOf(identity) ?? 0)
  }

  bySeq(seq: number): EventRow | undefined {
    return seq === 0 ? undefined : this.#rows.get(String(seq))
  }

  hasBytes(seq: number): boolean {
    const changed = this.#rows.changes.get(String(seq))
    if (changed !== undefined) return changed.purgedHash === ''
    if (this.#rows.changes.has(String(seq))) return false
    return this.#withBytes.ask(seq) ?? false
  }

  at(places: readonly PlaceRow[]): readonly PlacedEvent[] {
    return [...new Set(places.map((place) => place.event))].flatMap((seq) => this.#placedOf(seq) ?? [])
  }

  #placedOf(seq: number): PlacedEvent | undefined {
    const changed = this.#rows.changes.get(String(seq))
    if (changed !== undefined) return changed.purgedHash === '' ? changed : undefined
    if (this.#rows.changes.has(String(seq))) return undefined
    if (!this.#placed.has(seq)) this.#lacksPlaced.add(seq)
    return this.#placed.get(seq)
  }

  /** Came along with something else. */
  know(event: PlacedEvent): void {
    this.#placed.set(event.seq, event)
  }

  forgetIdentity(seq: number): void {
    const event = this.bySeq(seq)
    if (event === undefined) return
    this.#owned.set(event.identity, 0)
    this.#rows.put(String(seq), { ...event, identity: '' })
  }

  setLanes(seq: number, lanes: readonly LaneId[]): void {
    this.#change(seq, { lanes })
  }

  wipe(seq: number, hash: string): void {
    const none = new Uint8Array()
    this.#change(seq, { body: none, request: none, attributes: '', subject: '', purgedHash: hash, doomed: false })
  }

  doom(seq: number): void {
    this.#change(seq, { doomed: true })
  }

  #change(seq: number, change: Partial<EventRow>): void {
    const event = this.bySeq(seq)
    if (event !== undefined) this.#rows.put(String(seq), { ...event, ...change })
  }

  doomed(after: number, n: number): readonly EventRow[] {
    const sql = `${FROM_EVENTS} where doomed and seq > $1 order by seq limit $2 ${LOCK} skip locked`
    return this.#list(sql, [after, n]).filter((event) => event.doomed)
  }

  ofTenant(tenant: string, n: number): readonly EventRow[] {
    const sql = `${FROM_EVENTS} where tenant = $1 and purged_hash = '' order by seq limit $2 ${LOCK}`
    return this.#list(sql, [written(tenant), n]).filter((event) => event.purgedHash === '')
  }

  oldest(after: number, n: number): readonly EventRow[] {
    return this.#list(`${FROM_EVENTS} where seq > $1 order by seq limit $2 ${LOCK} skip locked`, [after, n])
  }

  arrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[] {
    return this.#arrivals.ask(after, n) ?? []
  }

  #list(sql: string, values: readonly (string | number)[]): readonly EventRow[] {
    return (this.#lists.ask(sql, values) ?? []).flatMap((seq) => this.bySeq(seq) ?? [])
  }

  addReceipt(event: number, receipt: Receipt): void {
    this.#receipts.push({ event, n: this.#draw(), receipt })
  }

  receipts(seq: number): readonly Receipt[] {
    return this.#receiptsOf.ask(seq) ?? []
  }

  remove(seq: number): void {
    const event = this.bySeq(seq)
    if (event === undefined) return
    this.#rows.remove(String(seq))
    if (event.identity !== '' && this.#ownerOf(event.identity) === seq) this.#owned.set(event.identity, 0)
    this.#named.set(event.id, 0)
  }

  again(): void {
    this.#rows.again()
    this.#owned.clear()
    this.#named.clear()
    this.#receipts.length = 0
    for (const lacks of [this.#lacksIdentities, this.#lacksIds, this.#lacksPlaced]) lacks.clear()
    this.#lists.again()
    this.#receiptsOf.again()
    this.#withBytes.again()
    this.#arrivals.again()
  }

  get isLacking(): boolean {
    const sets = [this.#lacksIdentities, this.#lacksIds, this.#lacksPlaced]
    const questions = [this.#rows, this.#lists, this.#receiptsOf, this.#withBytes, this.#arrivals]
    return questions.some(({ isLacking }) => isLacking) || sets.some((set) => set.size > 0)
  }

  async load(db: Db): Promise<void> {
    const lock = db.readOnly ? '' : LOCK
    await Promise.all([
      this.#loadOwners(db),
      this.#loadIds(db, lock),
      this.#loadSeqs(db, lock),
      this.#lists.load(async (sql, values) => this.#loadRows(await db.rows(sql, values))),
      this.#loadPlaced(db),
      this.#withBytes.loadTogether(async (events) => {
        const found = await db.rows(WITH_BYTES, [events.map(([seq]) => seq)])
        const seqs = new Set(found.map((row) => number(row[0])))
        return events.map(([seq]) => seqs.has(seq))
      }),
      this.#arrivals.load(async (after, n) => {
        const rows = await db.rows(ARRIVALS, [after, n])
        return rows.map((row) => ({ seq: number(row[0]), arrived: number(row[1]) }))
      }),
      this.#receiptsOf.load(async (event) => {
        const rows = await db.rows('select at, kind, id, body_hash from receipts where event = $1 order by n', [event])
        return rows.map(receiptOf)
      }),
    ])
  }

  async #loadOwners(db: Db): Promise<void> {
    const identities = [...this.#lacksIdentities]
    this.#lacksIdentities.clear()
    if (identities.length === 0) return
    for (const identity of identities) this.#owners.set(identity, 0)
    for (const [identity, seq] of await db.rows(OWNERS, [identities])) this.#owners.set(text(identity), number(seq))
  }

  async #loadIds(db: Db, lock: string): Promise<void> {
    const ids = [...this.#lacksIds]
    this.#lacksIds.clear()
    if (ids.length === 0) return
    for (const id of ids) this.#ids.set(id, 0)
    this.#loadRows(await db.rows(`${FROM_EVENTS} where id = any($1) order by seq ${lock}`, [ids.map(written)]))
  }

  async #loadSeqs(db: Db, lock: string): Promise<void> {
    const seqs = this.#rows.lacking()
    if (seqs.length === 0) return
    for (const seq of seqs) this.#rows.load(seq, undefined)
    this.#loadRows(await db.rows(`${FROM_EVENTS} where seq = any($1) order by seq ${lock}`, [seqs.map(Number)]))
  }

  async #loadPlaced(db: Db): Promise<void> {
    const wanted = [...this.#lacksPlaced]
    this.#lacksPlaced.clear()
    if (wanted.length === 0) return
    for (const seq of wanted) this.#placed.set(seq, undefined)
    for (const row of await db.rows(PLACED_EVENTS, [wanted])) {
      const event = placedOf(row)
      this.#placed.set(event.seq, event)
    }
  }

  #loadRows(rows: readonly Row[]): readonly number[] {
    return rows.map((row) => {
      const event = eventOf(row)
      this.#rows.load(String(event.seq), event)
      this.#ids.set(event.id, event.seq)
      return event.seq
    })
  }

  writes(): readonly Statement[] {
    const { kept, removed } = this.#rows
    const before = (event: EventRow): EventRow | undefined => this.#rows.stored(String(event.seq))
    const fresh = kept.filter((event) => before(event) === undefined)
    const wiped = kept
      .filter((event) => event.purgedHash !== '' && before(event)?.purgedHash === '')
      .map((event) => event.seq)
    const gone = removed.map(Number)
    const changed = kept.filter((event) => before(event) !== undefined)
    return [
      ...deleteBy('events where seq', gone),
      ...deleteBy('receipts where event', [...gone, ...wiped]),
      // Before others take an identity that is free by that.
      ...withRows(SET, SET_EVENTS, changed.map(changesOf)),
      ...(wiped.length > 0 ? [[WIPE, [wiped]] as const] : []),
      ...addEvents(fresh),
      ...this.#receiptWrites(),
      ...this.#sizeWrites(),
    ]
  }

  /** Of what is kept in all; in stripes, so that writers do not wait for each other. */
  #sizeWrites(): readonly Statement[] {
    let grown = 0
    for (const [seq, event] of this.#rows.changes) grown += sizeOf(event) - sizeOf(this.#rows.stored(seq))
    return grown === 0 ? [] : [[GROW, [grown]]]
  }

  #receiptWrites(): readonly Statement[] {
    if (this.#receipts.length === 0) return []
    const rows = this.#receipts.map(({ event, n, receipt: { at, kind, event: id, bodyHash } }) => ({
      event,
      n,
      at,
      kind,
      id: written(id),
      body_hash: bodyHash,
    }))
    return [...withJson(ADD_RECEIPTS, rows), [FORGET_RECEIPTS, [[...new Set(rows.map((row) => row.event))]]]]
  }
}
