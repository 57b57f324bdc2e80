// Events as rows, appended in the order of their arrival.
import type { Identity, LaneId } from '../../model/identity.ts'
import type { NewEvent, Receipt } from '../contract/index.ts'
import type { Arrival, EventRow, EventTable, PlacedEvent, PlaceRow } from '../rules/tables.ts'
import type { Identities } from './identities.ts'
import { bytes, number, text, type Row, type Statements } from './statements.ts'

const COLUMNS = `seq, id, identity, dedupe_until, source, type, time, tenant, subject, attributes, arrived, lanes,
  purged_hash, doomed, request, body`
const INSERT = `insert into events (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, ?, ?)`
const BY_SEQ = `select ${COLUMNS} from events where seq = ?`
const PLACED = 'seq, id, source, type, time, tenant, subject, attributes, arrived, body'
const ONE_PLACED = `select ${PLACED} from events where seq = ?`
const MANY_PLACED = `select ${PLACED} from events where seq in (select value from json_each(?))`
const RANGE_PLACED = `select ${PLACED} from events where seq between ? and ?`
const BY_ID = `select ${COLUMNS} from events where id = ?`
const DOOMED = `select ${COLUMNS} from events where doomed = 1 and seq > ? order by seq limit ?`
const OF_TENANT = `select ${COLUMNS} from events where tenant = ? and tenant <> '' and purged_hash = '' order by seq limit ?`
const OLDEST = `select ${COLUMNS} from events where seq > ? order by seq limit ?`
const ARRIVALS = 'select seq, arrived from events where seq > ? order by seq limit ?'
const WIPE = `update events set body = x'', request = x'', attributes = '', subject = '', purged_hash = ?, doomed = 0 where seq = ?`
const RECEIPT = `insert into receipts (event, n, at, kind, id, body_hash)
  values (?, (select coalesce(max(n), 0) + 1 from receipts where event = ?), ?, ?, ?, ?)`
const RECEIPTS = 'select at, kind, id, body_hash from receipts where event = ? order by n'
const RECEIPTS_KEPT = 100
const TRIM_RECEIPTS = `delete from receipts where event = ? and n <= (select max(n) from receipts where event = ?) - ${RECEIPTS_KEPT}`

export class SqliteEvents implements EventTable {
  readonly #sql: Statements
  readonly #identities: Identities
  readonly #draw: () => number

  constructor(sql: Statements, identities: Identities, draw: () => number) {
    this.#sql = sql
    this.#identities = identities
    this.#draw = draw
  }

  insert(event: NewEvent, arrival: Arrival): number | false {
    if (this.#identities.find(event.identity) !== undefined) return false
    const seq = this.#draw()
    const isNew = this.#sql.insert(
      INSERT,
      seq,
      event.id,
      event.identity,
      arrival.dedupeUntil,
      event.source,
      event.type,
      event.time,
      event.tenant,
      event.subject,
      event.attributes,
      arrival.arrived,
      arrival.lanes.join(','),
      event.request,
      event.body,
    )
    if (!isNew) return false
    this.#identities.add(event.identity, seq)
    return seq
  }

  byId(id: string): EventRow | undefined {
    return this.#one(this.#sql.get(BY_ID, id))
  }

  byIdentity(identity: Identity): EventRow | undefined {
    const seq = this.#identities.find(identity)
    return seq === undefined ? undefined : this.bySeq(seq)
  }

  bySeq(seq: number): EventRow | undefined {
    return this.#one(this.#sql.get(BY_SEQ, seq))
  }

  hasBytes(seq: number): boolean {
    return this.#sql.get('select purged_hash from events where seq = ?', seq)?.[0] === ''
  }

  at(places: readonly PlaceRow[]): readonly PlacedEvent[] {
    if (places.length < 3) return places.flatMap((place) => this.#sql.all(ONE_PLACED, place.event).map(placedOf))
    return this.#placedRows(places.map((place) => place.event)).map(placedOf)
  }

  /** Events that came together mostly run together: then they are read as they lie. */
  #placedRows(seqs: readonly number[]): readonly Row[] {
    // One by one: a call takes no list of any length.
    const first = seqs.reduce((least, seq) => Math.min(least, seq), Infinity)
    const last = seqs.reduce((most, seq) => Math.max(most, seq), 0)
    return last - first < 2 * seqs.length
      ? this.#sql.all(RANGE_PLACED, first, last)
      : this.#sql.all(MANY_PLACED, JSON.stringify(seqs))
  }

  forgetIdentity(seq: number): void {
    this.#dropIdentity(seq)
    this.#sql.run('update events set identity = null where seq = ?', seq)
  }

  setLanes(seq: number, lanes: readonly LaneId[]): void {
    this.#sql.run('update events set lanes = ? where seq = ?', lanes.join(','), seq)
  }

  wipe(seq: number, hash: string): void {
    this.#sql.run(WIPE, hash, seq)
    this.#sql.run('delete from receipts where event = ?', seq)
  }

  doom(seq: number): void {
    this.#sql.run('update events set doomed = 1 where seq = ?', seq)
  }

  doomed(after: number, n: number): readonly EventRow[] {
    return this.#sql.all(DOOMED, after, n).map(eventOf)
  }

  ofTenant(tenant: string, n: number): readonly EventRow[] {
    return this.#sql.all(OF_TENANT, tenant, n).map(eventOf)
  }

  addReceipt(seq: number, receipt: Receipt): void {
    this.#sql.run(RECEIPT, seq, seq, receipt.at, receipt.kind, receipt.event, receipt.bodyHash)
    this.#sql.run(TRIM_RECEIPTS, seq, seq)
  }

  receipts(seq: number): readonly Receipt[] {
    return this.#sql.all(RECEIPTS, seq).map((row) => ({
      at: number(row[0]),
      kind: text(row[1]) as Receipt['kind'],
      event: text(row[2]),
      bodyHash: text(row[3]),
    }))
  }

  oldest(after: number, n: number): readonly EventRow[] {
    return this.#sql.all(OLDEST, after, n).map(eventOf)
  }

  arrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[] {
    return this.#sql.all(ARRIVALS, after, n).map((row) => ({ seq: number(row[0]), arrived: number(row[1]) }))
  }

  remove(seq: number): void {
    this.#dropIdentity(seq)
    this.#sql.run('delete from events where seq = ?', seq)
    this.#sql.run('delete from receipts where event = ?', seq)
  }

  #dropIdentity(seq: number): void {
    const identity = this.#sql.get('select identity from events where seq = ?', seq)?.[0]
    if (typeof identity === 'string') this.#identities.remove(identity, seq)
  }

  #one(row: Row | undefined): EventRow | undefined {
    return row === undefined ? undefined : eventOf(row)
  }
}

function placedOf(row: Row): PlacedEvent {
  return {
    seq: number(row[0]),
    id: text(row[1]),
    source: text(row[2]),
    type: text(row[3]),
    time: number(row[4]),
    tenant: text(row[5]),
    subject: text(row[6]),
    attributes: text(row[7]),
    arrived: number(row[8]),
    body: bytes(row[9]),
  }
}

function eventOf(row: Row): EventRow {
  const lanes = text(row[11])
  return {
    seq: number(row[0]),
    id: text(row[1]),
    identity: row[2] === null ? '' : text(row[2]),
    dedupeUntil: number(row[3]),
    source: text(row[4]),
    type: text(row[5]),
    time: number(row[6]),
    tenant: text(row[7]),
    subject: text(row[8]),
    attributes: text(row[9]),
    arrived: number(row[10]),
    lanes: lanes === '' ? [] : lanes.split(','),
    purgedHash: text(row[12]),
    doomed: row[13] === 1,
    request: bytes(row[14]),
    body: bytes(row[15]),
  }
}
