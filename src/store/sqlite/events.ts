// `SqliteEvents` stores events as rows, in the order of their arrival.
import type { EventIdentity } from '../../model/identity.ts'
import { serializeSkips } from '../../model/routing.ts'
import type { EventToStore, PurgeScope, Receipt } from '../contract/index.ts'
import type { EventArrival, EventRow, EventTable, PlacedEvent, PlacementRow } from '../core/tables.ts'
import type { IdentityIndex } from './identities.ts'
import { EVENT_COLUMNS, toEventRow, toReceipt } from '../sql/rows.ts'
import { bytes, number, sqliteCells, text, type Row, type Statements } from './statements.ts'

const INSERT = `insert into events (${EVENT_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, ?, ?)`
const BY_SEQ = `select ${EVENT_COLUMNS} from events where seq = ?`
const PLACED = 'seq, id, source, type, time, tenant, subject, attributes, arrived, body'
const ONE_PLACED = `select ${PLACED} from events where seq = ?`
const MANY_PLACED = `select ${PLACED} from events where seq in (select value from json_each(?))`
const RANGE_PLACED = `select ${PLACED} from events where seq between ? and ?`
const BY_ID = `select ${EVENT_COLUMNS} from events where id = ?`
const DOOMED = `select ${EVENT_COLUMNS} from events where doomed = 1 and seq > ? order by seq limit ?`
const OLDEST = `select ${EVENT_COLUMNS} from events where seq > ? order by seq limit ?`
const ARRIVALS = 'select seq, arrived from events where seq > ? order by seq limit ?'
const WIPE = `update events set body = x'', request = x'', attributes = '', subject = '', purged_hash = ?, doomed = 0 where seq = ?`
const RECEIPT = `insert into receipts (event, n, at, kind, id, body_hash)
  values (?, (select coalesce(max(n), 0) + 1 from receipts where event = ?), ?, ?, ?, ?)`
const RECEIPTS = 'select at, kind, id, body_hash from receipts where event = ? order by n'
const RECEIPTS_KEPT = 100
const TRIM_RECEIPTS = `delete from receipts where event = ? and n <= (select max(n) from receipts where event = ?) - ${RECEIPTS_KEPT}`

export class SqliteEvents implements EventTable {
  readonly #sql: Statements
  readonly #identities: IdentityIndex
  readonly #draw: () => number

  constructor(sql: Statements, identities: IdentityIndex, draw: () => number) {
    this.#sql = sql
    this.#identities = identities
    this.#draw = draw
  }

  insert(event: EventToStore, arrival: EventArrival): number | false {
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
      serializeSkips(arrival.skips),
      event.request,
      event.body,
    )
    if (!isNew) return false
    this.#identities.add(event.identity, seq)
    return seq
  }

  findById(id: string): EventRow | undefined {
    return this.#toRow(this.#sql.get(BY_ID, id))
  }

  findByIdentity(identity: EventIdentity): EventRow | undefined {
    const seq = this.#identities.find(identity)
    return seq === undefined ? undefined : this.findBySeq(seq)
  }

  findBySeq(seq: number): EventRow | undefined {
    return this.#toRow(this.#sql.get(BY_SEQ, seq))
  }

  hasBody(seq: number): boolean {
    return this.#sql.get('select purged_hash from events where seq = ?', seq)?.[0] === ''
  }

  findPlaced(placements: readonly PlacementRow[]): readonly PlacedEvent[] {
    if (placements.length < 3)
      return placements.flatMap((placement) => this.#sql.all(ONE_PLACED, placement.event).map(toPlacedEvent))
    return this.#placedRows(placements.map((placement) => placement.event)).map(toPlacedEvent)
  }

  /** `#placedRows` reads a range if the events are dense: events that arrive together mostly run together. */
  #placedRows(seqs: readonly number[]): readonly Row[] {
    // `reduce`, because spreading a list of any length into `Math.min` would overflow the stack.
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

  setRouting(seq: number, { lanes, skips }: Pick<EventRow, 'lanes' | 'skips'>): void {
    this.#sql.run('update events set lanes = ?, skips = ? where seq = ?', lanes.join(','), serializeSkips(skips), seq)
  }

  wipe(seq: number, hash: string): void {
    this.#sql.run(WIPE, hash, seq)
    this.#sql.run('delete from receipts where event = ?', seq)
  }

  doom(seq: number): void {
    this.#sql.run('update events set doomed = 1 where seq = ?', seq)
  }

  findDoomed(after: number, n: number): readonly EventRow[] {
    return this.#sql.all(DOOMED, after, n).map(toRow)
  }

  findInScope(scope: PurgeScope, n: number): readonly EventRow[] {
    const { where, values } = toCondition(scope)
    const sql = `select ${EVENT_COLUMNS} from events where purged_hash = ''${where} order by seq limit ?`
    return this.#sql.all(sql, ...values, n).map(toRow)
  }

  filterByScope(seqs: readonly number[], scope: PurgeScope): readonly number[] {
    const { where, values } = toCondition(scope)
    const sql = `select seq from events where seq in (select value from json_each(?))${where.replaceAll('and ', 'and +')}`
    return this.#sql.all(sql, JSON.stringify(seqs), ...values).map((row) => number(row[0]))
  }

  addReceipt(seq: number, receipt: Receipt): void {
    this.#sql.run(RECEIPT, seq, seq, receipt.at, receipt.kind, receipt.event, receipt.bodyHash)
    this.#sql.run(TRIM_RECEIPTS, seq, seq)
  }

  findReceipts(seq: number): readonly Receipt[] {
    return this.#sql.all(RECEIPTS, seq).map((row) => toReceipt(sqliteCells, row))
  }

  findOldest(after: number, n: number): readonly EventRow[] {
    return this.#sql.all(OLDEST, after, n).map(toRow)
  }

  findArrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[] {
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

  #toRow(row: Row | undefined): EventRow | undefined {
    return row === undefined ? undefined : toRow(row)
  }
}

/** An index leaves out events without a tenant, and one those without a subject. */
function toCondition({ tenant, subject, id }: PurgeScope): {
  readonly where: string
  readonly values: readonly string[]
} {
  const given = Object.entries({ subject, tenant, id }).filter(([, value]) => value !== undefined)
  const where = given.map(([name]) => ` and ${name} = ?${name === 'id' ? '' : ` and ${name} <> ''`}`).join('')
  return { where, values: given.map(([, value]) => String(value)) }
}

function toPlacedEvent(row: Row): PlacedEvent {
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

function toRow(row: Row): EventRow {
  return toEventRow(sqliteCells, row)
}
