// `PostgresDocs` holds the documents and the audit trail of a transaction. One lock orders their comparisons and writes over
// all processes.
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable } from '../core/tables.ts'
import type { AdvisoryLocks } from './locks.ts'
import {
  RowCache,
  QueryCache,
  buildUpsert,
  bindJson,
  type Db,
  type TransactionTable,
  type Statement,
} from './row-cache.ts'
import { AUDIT_COLUMNS, DOC_COLUMNS, toAuditRecord, toDoc } from '../sql/rows.ts'
import { escapeText, postgresCells, toByteaHex } from './values.ts'

const PUT_DOC = buildUpsert('docs', DOC_COLUMNS, 'kind, id')
const ADD_AUDIT = buildUpsert('audit', AUDIT_COLUMNS, 'id')

export class PostgresDocs implements DocTable, TransactionTable {
  readonly #locks: AdvisoryLocks
  readonly #docs = new RowCache<Doc>()
  readonly #pages = new QueryCache<[kind: string, after: string, n: number], readonly Doc[]>()
  readonly #lastAudit = new QueryCache<[], { readonly record: AuditRecord | undefined }>()
  readonly #added: AuditRecord[] = []

  constructor(locks: AdvisoryLocks) {
    this.#locks = locks
  }

  /** `get` takes the lock of all documents, so that a comparison of revisions and its write are atomic over all processes. */
  get(kind: string, id: string): Doc | undefined {
    this.#locks.require('docs')
    return this.#docs.get(JSON.stringify([kind, id]))
  }

  put(doc: Doc): void {
    this.#docs.put(JSON.stringify([doc.kind, doc.id]), doc)
  }

  remove(kind: string, id: string): void {
    this.#docs.remove(JSON.stringify([kind, id]))
  }

  page(kind: string, after: string, n: number): readonly Doc[] {
    return this.#pages.get(kind, after, n) ?? []
  }

  lastAudit(): AuditRecord | undefined {
    this.#locks.require('docs')
    return this.#added.at(-1) ?? this.#lastAudit.get()?.record
  }

  addAudit(record: AuditRecord): void {
    this.#added.push(record)
  }

  resetPass(): void {
    this.#docs.resetPass()
    this.#pages.resetPass()
    this.#lastAudit.resetPass()
    this.#added.length = 0
  }

  get hasMisses(): boolean {
    return this.#docs.hasMisses || this.#pages.hasMisses || this.#lastAudit.hasMisses
  }

  async load(db: Db): Promise<void> {
    const keys = this.#docs.takeMisses()
    for (const key of keys) this.#docs.load(key, undefined)
    await Promise.all([
      keys.length > 0
        ? this.#loadDocs(
            db,
            keys.map((key) => JSON.parse(key) as [string, string]),
          )
        : undefined,
      this.#pages.load(async (kind, after, n) => {
        const sql = `select ${DOC_COLUMNS} from docs where kind = $1 and id > $2 order by id limit $3`
        return (await db.query(sql, [escapeText(kind), escapeText(after), n])).map((row) => toDoc(postgresCells, row))
      }),
      this.#lastAudit.load(async () => {
        const [row] = await db.query(`select ${AUDIT_COLUMNS} from audit order by id desc limit 1`)
        return { record: row === undefined ? undefined : toAuditRecord(postgresCells, row) }
      }),
    ])
  }

  async #loadDocs(db: Db, names: readonly (readonly [string, string])[]): Promise<void> {
    const sql = `select d.kind, d.id, d.rev, d.body from docs d join unnest($1::text[], $2::text[]) as w (kind, id)
      on d.kind = w.kind and d.id = w.id`
    for (const row of await db.query(sql, [
      names.map(([kind]) => escapeText(kind)),
      names.map(([, id]) => escapeText(id)),
    ])) {
      const doc = toDoc(postgresCells, row)
      this.#docs.load(JSON.stringify([doc.kind, doc.id]), doc)
    }
  }

  buildWrites(): readonly Statement[] {
    const rows = this.#docs.changedRows.map(({ kind, id, rev, body }) => ({
      kind: escapeText(kind),
      id: escapeText(id),
      rev,
      body: toByteaHex(body),
    }))
    const added = this.#added.map((record) => ({
      ...record,
      who: escapeText(record.who),
      what: escapeText(record.what),
    }))
    const removed = this.#docs.removedKeys.map((key): Statement => {
      const [kind = '', id = ''] = JSON.parse(key) as readonly string[]
      return ['delete from docs where kind = $1 and id = $2', [escapeText(kind), escapeText(id)]]
    })
    return [...removed, ...bindJson(PUT_DOC, rows), ...bindJson(ADD_AUDIT, added)]
  }
}
