// `PostgresDocs` holds the documents and the audit trail of a transaction. One lock orders their comparisons and writes over
// all processes.
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable } from '../core/tables.ts'
import type { AdvisoryLocks } from './locks.ts'
import {
  bindJson,
  buildUpsert,
  CachedTable,
  each,
  QueryCache,
  RowCache,
  type Statement,
  type TransactionCache,
} from './row-cache.ts'
import { AUDIT_COLUMNS, DOC_COLUMNS, toAuditRecord, toDoc } from '../sql/rows.ts'
import { escapeText, postgresCells, toByteaHex } from './values.ts'

const PUT_DOC = buildUpsert('docs', DOC_COLUMNS, 'kind, id')
const ADD_AUDIT = buildUpsert('audit', AUDIT_COLUMNS, 'id')

const SELECT = `select d.kind, d.id, d.rev, d.body from docs d join unnest($1::text[], $2::text[]) as w (kind, id)
  on d.kind = w.kind and d.id = w.id`
const PAGE = `select ${DOC_COLUMNS} from docs where kind = $1 and id > $2 order by id limit $3`
const LAST_AUDIT = `select ${AUDIT_COLUMNS} from audit order by id desc limit 1`

export class PostgresDocs extends CachedTable implements DocTable {
  readonly #locks: AdvisoryLocks
  readonly #docs = new RowCache<Doc>(async (db, keys) => {
    const names = keys.map(parseKey)
    const rows = await db.query(SELECT, [
      names.map(([kind]) => escapeText(kind)),
      names.map(([, id]) => escapeText(id)),
    ])
    return rows.map((row) => toDoc(postgresCells, row)).map((doc) => [toKey(doc.kind, doc.id), doc])
  })
  readonly #pages = new QueryCache(
    each(async (db, kind: string, after: string, n: number) => {
      const rows = await db.query(PAGE, [escapeText(kind), escapeText(after), n])
      return rows.map((row) => toDoc(postgresCells, row))
    }),
  )
  readonly #lastAudit = new QueryCache<[], { readonly record: AuditRecord | undefined }>(
    each(async (db) => ({ record: (await db.query(LAST_AUDIT)).map((row) => toAuditRecord(postgresCells, row))[0] })),
  )
  readonly #added: AuditRecord[] = []
  protected readonly caches: readonly TransactionCache[] = [this.#docs, this.#pages, this.#lastAudit]

  constructor(locks: AdvisoryLocks) {
    super()
    this.#locks = locks
  }

  /** `get` takes the lock of all documents, so that a comparison of revisions and its write are atomic over all processes. */
  get(kind: string, id: string): Doc | undefined {
    this.#locks.require('docs')
    return this.#docs.get(toKey(kind, id))
  }

  put(doc: Doc): void {
    this.#docs.put(toKey(doc.kind, doc.id), doc)
  }

  remove(kind: string, id: string): void {
    this.#docs.remove(toKey(kind, id))
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

  override resetPass(): void {
    super.resetPass()
    this.#added.length = 0
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
      const [kind, id] = parseKey(key)
      return ['delete from docs where kind = $1 and id = $2', [escapeText(kind), escapeText(id)]]
    })
    return [...removed, ...bindJson(PUT_DOC, rows), ...bindJson(ADD_AUDIT, added)]
  }
}

function toKey(kind: string, id: string): string {
  return JSON.stringify([kind, id])
}

function parseKey(key: string): readonly [kind: string, id: string] {
  return JSON.parse(key) as [string, string]
}
