// The small tables of a transaction: processes, permits, pauses, pressure and replays share one table, and documents and the audit
// trail have their own.
import type { Millis } from '../../clock.ts'
import type { Pressure } from '../../model/place.ts'
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable, PauseRow, ProcessRow, SmallTables } from '../core/tables.ts'
import { jsonTable } from './json-table.ts'
import type { RowCache } from './row-cache.ts'
import { TableView, type TableOptions, type TableSpec, type TransactionPart } from './table-view.ts'
import { groupRange, IN_GROUP, pad, prefixRange, quote } from './texts.ts'

interface PermitRow {
  readonly name: string
  readonly held: Readonly<Record<string, { readonly n: number; readonly until: Millis }>>
}

/** `SmallRow` is a row of one of these kinds. `at` orders rows that are forgotten by their age. */
export type SmallRow =
  | { readonly kind: 'process'; readonly id: string; readonly row: ProcessRow; readonly at: Millis }
  | { readonly kind: 'permit'; readonly id: string; readonly row: PermitRow; readonly at: Millis }
  | { readonly kind: 'pause'; readonly id: string; readonly row: PauseRow }
  | { readonly kind: 'pressure'; readonly id: string; readonly row: Pressure }
  | { readonly kind: 'replay'; readonly id: string; readonly at: Millis }
  | { readonly kind: 'routes'; readonly id: ''; readonly row: number }

const SMALL: TableSpec<SmallRow> = jsonTable('small', (row) => {
  if (row.kind === 'pause') return [`${row.kind}/`]
  return 'at' in row ? [`${row.kind}/${pad(row.at)}`] : []
})

type SmallRowOf<K extends SmallRow['kind']> = Extract<SmallRow, { readonly kind: K }>

/** The most rows that one batch of maintenance forgets. */
const MAX_FORGOTTEN = 500

export class RedisSmallTables implements SmallTables {
  readonly view: TableView<SmallRow>

  constructor(prefix: string, cache: RowCache<SmallRow>) {
    this.view = new TableView(SMALL, { prefix, cache })
  }

  #get<K extends SmallRow['kind']>(kind: K, id: string): SmallRowOf<K> | undefined {
    return this.view.get(`${kind}/${id}`) as SmallRowOf<K> | undefined
  }

  #put(row: SmallRow): void {
    this.view.put(`${row.kind}/${row.id}`, row)
  }

  #findBefore<K extends SmallRow['kind']>(kind: K, before: Millis): readonly SmallRowOf<K>[] {
    const range = { from: `${kind}/`, to: `${kind}/${pad(before + 1)}` }
    return this.view.find(range, MAX_FORGOTTEN, { isChecked: false }) as readonly SmallRowOf<K>[]
  }

  /** The epoch of the routes. */
  get routes(): number {
    return this.#get('routes', '')?.row ?? 1
  }

  raiseRoutes(): void {
    this.#put({ kind: 'routes', id: '', row: this.routes + 1 })
  }

  getProcess(id: string): ProcessRow | undefined {
    return this.#get('process', id)?.row
  }

  putProcess(id: string, row: ProcessRow): void {
    this.#put({ kind: 'process', id, row, at: row.at })
  }

  forgetProcesses(before: Millis): void {
    for (const { id } of this.#findBefore('process', before)) this.view.remove(`process/${id}`)
  }

  findPermits(name: string): readonly { readonly process: string; readonly n: number; readonly until: Millis }[] {
    return Object.entries(this.#get('permit', name)?.row.held ?? {}).map(([process, permit]) => ({
      process,
      ...permit,
    }))
  }

  putPermit(name: string, process: string, permit: { readonly n: number; readonly until: Millis }): void {
    this.#setPermits(name, { ...this.#get('permit', name)?.row.held, [process]: permit })
  }

  removePermit(name: string, process: string): void {
    const { [process]: gone, ...held } = this.#get('permit', name)?.row.held ?? {}
    if (gone !== undefined) this.#setPermits(name, held)
  }

  #setPermits(name: string, held: PermitRow['held']): void {
    const ends = Object.values(held).map(({ until }) => until)
    if (ends.length === 0) this.view.remove(`permit/${name}`)
    else this.#put({ kind: 'permit', id: name, row: { name, held }, at: Math.min(...ends) })
  }

  forgetPermits(before: Millis): void {
    for (const { id, row } of this.#findBefore('permit', before)) {
      const left = Object.entries(row.held).filter(([, { until }]) => until > before)
      this.#setPermits(id, Object.fromEntries(left))
    }
  }

  getPause(flow: string): PauseRow | undefined {
    return this.#get('pause', flow)?.row
  }

  putPause(flow: string, pause: PauseRow | undefined): void {
    if (pause === undefined) this.view.remove(`pause/${flow}`)
    else this.#put({ kind: 'pause', id: flow, row: pause })
  }

  /** All paused flows. */
  findPaused(): readonly SmallRowOf<'pause'>[] {
    return this.view.find(prefixRange('pause/'), Infinity) as readonly SmallRowOf<'pause'>[]
  }

  getPressure(flow: string): Pressure | undefined {
    return this.#get('pressure', flow)?.row
  }

  putPressure(flow: string, row: Pressure): void {
    this.#put({ kind: 'pressure', id: flow, row })
  }

  markReplayed(replay: string, event: number, at: Millis): boolean {
    const id = quote(replay) + String(event)
    if (this.#get('replay', id) !== undefined) return true
    this.#put({ kind: 'replay', id, at })
    return false
  }

  forgetReplays(before: Millis): void {
    for (const { id } of this.#findBefore('replay', before)) this.view.remove(`replay/${id}`)
  }
}

interface DocRow extends Omit<Doc, 'body'> {
  readonly body: string
}

const DOCS: TableSpec<DocRow> = jsonTable('docs', ({ kind, id }) => [toDocText(kind, id)])
const AUDIT: TableSpec<AuditRecord> = jsonTable('audit', ({ id }) => [`o${pad(id)}`])

function toDocText(kind: string, id: string): string {
  // The text of an index has no NUL.
  return `${docName(kind)}${id.replaceAll('\0', '\u0001')}`
}

function docName(kind: string): string {
  return `d${quote(kind)}${IN_GROUP}`
}

export class RedisDocs implements DocTable {
  readonly audit: TableView<AuditRecord>
  readonly #view: TableView<DocRow>

  constructor(options: TableOptions<never>) {
    this.#view = new TableView(DOCS, { prefix: options.prefix })
    this.audit = new TableView(AUDIT, { prefix: options.prefix })
  }

  get parts(): readonly TransactionPart[] {
    return [this.#view, this.audit]
  }

  get(kind: string, id: string): Doc | undefined {
    const row = this.#view.get(toDocKey(kind, id))
    return row && toDoc(row)
  }

  put(doc: Doc): void {
    this.#view.put(toDocKey(doc.kind, doc.id), { ...doc, body: Buffer.from(doc.body).toString('base64') })
  }

  remove(kind: string, id: string): void {
    this.#view.remove(toDocKey(kind, id))
  }

  page(kind: string, after: string, n: number): readonly Doc[] {
    const { to } = groupRange(docName(kind))
    // The row after `after` begins with a greater text; `after` itself is left out.
    const found = this.#view.find({ from: toDocText(kind, after), to }, n + 1, { isChecked: false })
    return found
      .filter(({ id }) => id !== after || after === '')
      .slice(0, n)
      .map(toDoc)
  }

  lastAudit(): AuditRecord | undefined {
    return this.audit.find({ ...prefixRange('o'), isReversed: true }, 1)[0]
  }

  addAudit(record: AuditRecord): void {
    this.audit.put(String(record.id), record)
  }
}

function toDocKey(kind: string, id: string): string {
  return quote(kind) + id
}

function toDoc({ kind, id, rev, body }: DocRow): Doc {
  return { kind, id, rev, body: Buffer.from(body, 'base64') }
}
