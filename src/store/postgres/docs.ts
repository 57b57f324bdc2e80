// Documents and the audit trail in a transaction: compared and written one after the other, over all processes.
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable } from '../rules/tables.ts'
import type { Locks } from './locks.ts'
import { Keyed, Questions, upsert, withJson, type Db, type Part, type Statement } from './part.ts'
import { bytes, hex, number, text, written, type Row } from './values.ts'

const PUT_DOC = upsert('docs', ['kind', 'id', 'rev', 'body'], ['kind', 'id'])

export class PostgresDocs implements DocTable, Part {
  readonly #locks: Locks
  readonly #docs = new Keyed<Doc>()
  readonly #pages = new Questions<[kind: string, after: string, n: number], readonly Doc[]>()
  readonly #last = new Questions<[], { readonly record: AuditRecord | undefined }>()
  readonly #added: AuditRecord[] = []

  constructor(locks: Locks) {
    this.#locks = locks
  }

  /** Documents are compared and written one after the other, over all processes. */
  get(kind: string, id: string): Doc | undefined {
    this.#locks.hold('docs')
    return this.#docs.get(JSON.stringify([kind, id]))
  }

  put(doc: Doc): void {
    this.#docs.put(JSON.stringify([doc.kind, doc.id]), doc)
  }

  remove(kind: string, id: string): void {
    this.#docs.remove(JSON.stringify([kind, id]))
  }

  page(kind: string, after: string, n: number): readonly Doc[] {
    return this.#pages.ask(kind, after, n) ?? []
  }

  lastAudit(): AuditRecord | undefined {
    this.#locks.hold('docs')
    return this.#added.at(-1) ?? this.#last.ask()?.record
  }

  addAudit(record: AuditRecord): void {
    this.#added.push(record)
  }

  again(): void {
    this.#docs.again()
    this.#pages.again()
    this.#last.again()
    this.#added.length = 0
  }

  get isLacking(): boolean {
    return this.#docs.isLacking || this.#pages.isLacking || this.#last.isLacking
  }

  async load(db: Db): Promise<void> {
    const keys = this.#docs.lacking()
    for (const key of keys) this.#docs.load(key, undefined)
    await Promise.all([
      keys.length > 0
        ? this.#loadDocs(
            db,
            keys.map((key) => JSON.parse(key) as [string, string]),
          )
        : undefined,
      this.#pages.load(async (kind, after, n) => {
        const sql = 'select kind, id, rev, body from docs where kind = $1 and id > $2 order by id limit $3'
        return (await db.rows(sql, [written(kind), written(after), n])).map(docOf)
      }),
      this.#last.load(async () => {
        const [row] = await db.rows('select id, at, who, what, chain from audit order by id desc limit 1')
        return { record: row === undefined ? undefined : auditOf(row) }
      }),
    ])
  }

  async #loadDocs(db: Db, names: readonly (readonly [string, string])[]): Promise<void> {
    const sql = `select d.kind, d.id, d.rev, d.body from docs d join unnest($1::text[], $2::text[]) as w (kind, id)
      on d.kind = w.kind and d.id = w.id`
    for (const row of await db.rows(sql, [names.map(([kind]) => written(kind)), names.map(([, id]) => written(id))])) {
      const doc = docOf(row)
      this.#docs.load(JSON.stringify([doc.kind, doc.id]), doc)
    }
  }

  writes(): readonly Statement[] {
    const rows = this.#docs.kept.map(({ kind, id, rev, body }) => ({
      kind: written(kind),
      id: written(id),
      rev,
      body: hex(body),
    }))
    const added = this.#added.map((record) => ({ ...record, who: written(record.who), what: written(record.what) }))
    const removed = this.#docs.removed.map((key): Statement => {
      const [kind = '', id = ''] = JSON.parse(key) as readonly string[]
      return ['delete from docs where kind = $1 and id = $2', [written(kind), written(id)]]
    })
    return [...removed, ...withJson(PUT_DOC, rows), ...withJson(ADD_AUDIT, added)]
  }
}

const ADD_AUDIT = upsert('audit', ['id', 'at', 'who', 'what', 'chain'], ['id'])

function docOf(row: Row): Doc {
  return { kind: text(row[0]), id: text(row[1]), rev: number(row[2]), body: bytes(row[3]) }
}

export function auditOf(row: Row): AuditRecord {
  return { id: number(row[0]), at: number(row[1]), who: text(row[2]), what: text(row[3]), chain: text(row[4]) }
}
