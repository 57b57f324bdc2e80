// `RedisEvents` holds the events of a transaction. An event has a row, its body, and the request that brought it. Two tables lead from
// its id and from its identity to its number.
import type { EventIdentity } from '../../model/identity.ts'
import type { EventToStore, PurgeScope, Receipt } from '../contract/index.ts'
import type { EventArrival, EventRow, EventTable, PlacedEvent, PlacementRow } from '../core/tables.ts'
import { jsonTable } from './json-table.ts'
import { RawView } from './raw-view.ts'
import type { CommitRequest } from './script-requests.ts'
import { TableView, type TableSpec, type TransactionPart } from './table-view.ts'
import type { IsFresh } from './work-tables.ts'
import { groupRange, IN_GROUP, pad, prefixRange, quote, type Range } from './texts.ts'
import type { PlacedEvents } from './placements.ts'

/** `EventHead` is an event without its bytes. */
export type EventHead = Omit<EventRow, 'body' | 'request'> & { readonly size: number; readonly requestSize: number }

const EVENTS: TableSpec<EventHead> = jsonTable('events', (event) => {
  const order = pad(event.seq)
  const texts = [`o${order}`]
  if (event.tenant !== '') texts.push(`${scopeName('t', event.tenant)}${order}`)
  if (event.subject !== '') texts.push(`${scopeName('s', event.subject)}${order}`)
  if (event.doomed) texts.push(`d${order}`)
  return texts
})
const NO_TEXTS = (): readonly string[] => []
const IDS: TableSpec<number> = jsonTable('ids', NO_TEXTS)
const IDENTITIES: TableSpec<number> = jsonTable('identities', NO_TEXTS)
const RECEIPTS: TableSpec<readonly Receipt[]> = jsonTable('receipts', NO_TEXTS)

const RECEIPTS_KEPT = 100
const NO_BYTES = new Uint8Array()

/** The events of a tenant (t) or with a subject (s), in the order of their arrival. */
function scopeName(kind: 't' | 's', text: string): string {
  return `${kind}${quote(text)}${IN_GROUP}`
}

/** `eventRange` is the narrowest part of the index that has all events of the scope. */
export function eventRange({ tenant, subject }: Pick<PurgeScope, 'tenant' | 'subject'>): Range {
  if (subject !== undefined && subject !== '') return groupRange(scopeName('s', subject))
  if (tenant !== undefined && tenant !== '') return groupRange(scopeName('t', tenant))
  return prefixRange('o')
}

export class RedisEvents implements EventTable {
  readonly rows: TableView<EventHead>
  readonly ids: TableView<number>
  readonly receipts: TableView<readonly Receipt[]>
  readonly bodies: RawView
  readonly #identities: TableView<number>
  readonly #requests: RawView
  readonly #draw: () => number
  readonly #meta: string
  #grown = 0

  readonly #isFresh: IsFresh

  constructor(
    prefix: string,
    meta: string,
    { draw, isFresh }: { readonly draw: () => number; readonly isFresh: IsFresh },
  ) {
    this.rows = new TableView(EVENTS, { prefix })
    this.ids = new TableView(IDS, { prefix })
    this.receipts = new TableView(RECEIPTS, { prefix })
    this.#identities = new TableView(IDENTITIES, { prefix })
    this.bodies = new RawView('bodies', prefix)
    this.#requests = new RawView('requests', prefix)
    this.#draw = draw
    this.#isFresh = isFresh
    this.#meta = meta
  }

  get parts(): readonly TransactionPart[] {
    return [this.rows, this.ids, this.#identities, this.receipts, this.bodies, this.#requests, this]
  }

  /** An event that arrives is taken for new. The commit fails if its id or identity is known. */
  assumeNew(isNew: boolean): void {
    for (const table of [this.ids, this.#identities]) table.assumesNew = isNew
  }

  insert(event: EventToStore, arrival: EventArrival): number | false {
    const [owner, holder] = [this.#identities.get(event.identity), this.ids.get(event.id)]
    if (owner !== undefined || holder !== undefined) return false
    const seq = this.#draw()
    const { id, identity, source, type, time, tenant, subject, attributes, request, body } = event
    const head = {
      id,
      identity,
      source,
      type,
      time,
      tenant,
      subject,
      attributes,
      ...arrival,
      seq,
      purgedHash: '',
      doomed: false,
    }
    const key = String(seq)
    // A number is never drawn twice, so the row is new.
    this.rows.putNew(key, { ...head, size: body.length, requestSize: request.length })
    this.bodies.put(key, body)
    if (request.length > 0) this.#requests.put(key, request)
    this.#identities.put(event.identity, seq)
    this.ids.put(event.id, seq)
    this.#grown += body.length + request.length
    return seq
  }

  findById(id: string): EventRow | undefined {
    return this.findBySeq(this.ids.get(id) ?? 0)
  }

  findByIdentity(identity: EventIdentity): EventRow | undefined {
    return this.findBySeq(this.#identities.get(identity) ?? 0)
  }

  findBySeq(seq: number): EventRow | undefined {
    if (seq <= 0) return undefined
    const key = String(seq)
    const head = this.rows.get(key)
    // The bytes are loaded together with the row. Without a request, none are stored.
    const body = this.bodies.get(key)
    const request = head?.requestSize === 0 ? undefined : this.#requests.get(key)
    return head && { ...head, body: body ?? NO_BYTES, request: request ?? NO_BYTES }
  }

  hasBody(seq: number): boolean {
    return this.rows.get(String(seq))?.purgedHash === ''
  }

  findPlaced(placements: readonly PlacementRow[]): readonly PlacedEvent[] {
    const seqs =
      placements.length > 1
        ? new Set(placements.map((placement) => placement.event))
        : placements.map((placement) => placement.event)
    return [...seqs].flatMap((seq) => {
      const key = String(seq)
      // A purge changes the lane too, so the check of the lane covers its events.
      const [head, body] = [this.rows.peek(key), this.bodies.get(key)]
      // Two calls of one transaction may take the same event, so each gets its own copy of the bytes.
      return head === undefined || head.purgedHash !== ''
        ? []
        : { ...head, body: body === undefined ? NO_BYTES : new Uint8Array(body) }
    })
  }

  /** `setPlaced` stores events that were loaded together with their lanes. */
  setPlaced({ events, rows, bodies }: PlacedEvents): void {
    this.rows.setLoaded(events, rows)
    for (const [at, key] of events.entries()) this.bodies.setLoaded(key, bodies[at] ?? undefined)
  }

  forgetIdentity(seq: number): void {
    const head = this.rows.get(String(seq))
    if (head === undefined) return
    this.#identities.remove(head.identity)
    this.rows.put(String(seq), { ...head, identity: '' })
  }

  setRouting(seq: number, { lanes, skips }: Pick<EventRow, 'lanes' | 'skips'>): void {
    this.#change(seq, { lanes, skips })
  }

  wipe(seq: number, purgedHash: string): void {
    this.#change(seq, { attributes: '', subject: '', purgedHash, doomed: false, size: 0, requestSize: 0 })
    this.#removeBytes(seq)
    this.receipts.remove(String(seq))
  }

  doom(seq: number): void {
    this.#change(seq, { doomed: true })
  }

  #change(seq: number, change: Partial<EventHead>): void {
    const head = this.rows.get(String(seq))
    if (head === undefined) return
    const next = { ...head, ...change }
    this.#grown += next.size + next.requestSize - head.size - head.requestSize
    this.rows.put(String(seq), next)
  }

  #removeBytes(seq: number): void {
    this.bodies.remove(String(seq))
    this.#requests.remove(String(seq))
  }

  findDoomed(after: number, n: number): readonly EventRow[] {
    return this.#complete(
      this.rows.find({ from: `d${pad(after + 1)}`, to: prefixRange('d').to }, n, { isChecked: false }),
    )
  }

  findInScope(scope: PurgeScope, n: number): readonly EventRow[] {
    if (scope.tenant === '' || scope.subject === '') return []
    const range = eventRange(scope)
    const isWanted = (event: EventHead): boolean => event.purgedHash === '' && isInScope(event, scope)
    // Purged events keep their tenant, so the first `n` events may have no bytes any more.
    for (let most = n; ; most *= 4) {
      const found = this.rows.find(range, most, { isChecked: false })
      const wanted = found.filter(isWanted)
      if (wanted.length >= n || found.length < most) return this.#complete(wanted.slice(0, n))
    }
  }

  filterByScope(seqs: readonly number[], scope: PurgeScope): readonly number[] {
    return seqs.filter((seq) => {
      const event = this.rows.get(String(seq))
      return event !== undefined && isInScope(event, scope)
    })
  }

  addReceipt(seq: number, receipt: Receipt): void {
    const all = [...this.findReceipts(seq), receipt].slice(-RECEIPTS_KEPT)
    if (this.#isFresh(seq)) this.receipts.putNew(String(seq), all)
    else this.receipts.put(String(seq), all)
  }

  findReceipts(seq: number): readonly Receipt[] {
    const key = String(seq)
    return (this.#isFresh(seq) ? this.receipts.changed(key) : this.receipts.get(key)) ?? []
  }

  findOldest(after: number, n: number): readonly EventRow[] {
    return this.#complete(this.findArrivals(after, n))
  }

  findArrivals(after: number, n: number): readonly EventHead[] {
    return this.rows.find({ from: `o${pad(after + 1)}`, to: prefixRange('o').to }, n, { isChecked: false })
  }

  #complete(heads: readonly EventHead[]): readonly EventRow[] {
    return heads.flatMap(({ seq }) => this.findBySeq(seq) ?? [])
  }

  remove(seq: number): void {
    const head = this.rows.get(String(seq))
    if (head === undefined) return
    this.#grown -= head.size + head.requestSize
    this.rows.remove(String(seq))
    this.#removeBytes(seq)
    this.receipts.remove(String(seq))
    if (head.identity !== '' && this.#identities.get(head.identity) === seq) this.#identities.remove(head.identity)
    this.ids.remove(head.id)
  }

  // The size of all stored events is a number of the store.

  resetPass(): void {
    this.#grown = 0
  }

  readonly hasMisses = false

  addReads(): void {}

  addCommit(commit: CommitRequest): void {
    if (this.#grown !== 0) commit.write('HINCRBY', this.#meta, 'bytes', String(this.#grown))
  }

  updateCache(): void {}

  forgetLoaded(): void {}
}

function isInScope(event: EventHead, { tenant, subject, id }: PurgeScope): boolean {
  return (
    (tenant === undefined || event.tenant === tenant) &&
    (subject === undefined || event.subject === subject) &&
    (id === undefined || event.id === id)
  )
}
