// `openDatabase` opens the tables that an app keeps beside the store: a SQLite file, or a schema on the same PostgreSQL server.
import { DatabaseSync } from 'node:sqlite'
import type { PoolClient } from 'pg'
import { OwnSchema } from './own-schema.ts'

type Value = string | number | null
export type Row = Readonly<Record<string, Value>>

/** With `?` for each value. */
export interface Statement {
  readonly sql: string
  readonly values?: readonly Value[]
}

export interface Database {
  readonly kind: 'sqlite' | 'postgres'
  /** Runs one statement and returns its rows. */
  rows(sql: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Runs the statements in one transaction, and returns the rows of each. */
  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
}

export interface DatabaseOptions {
  /** Names the SQLite file (`<store>.<name>`) and the schema on PostgreSQL. Letters, digits and _. */
  readonly name: string
  /** Statements that may be repeated, e.g. `create table if not exists …`. */
  readonly tables: string
  /** Further statements for PostgreSQL, e.g. policies. */
  readonly postgresOnly?: string
}

/** `store` is the address of the app's store. */
export function openDatabase(store: string, options: DatabaseOptions): Database {
  if (/^postgres(?:ql)?:/.test(store)) return new Postgres(store, options)
  const file = store.replace(/^sqlite:/, '').replace(/\?.*$/, '')
  return new Sqlite(store === 'memory:' || file === ':memory:' ? ':memory:' : `${file}.${options.name}`, options)
}

interface Waiting {
  readonly statements: readonly Statement[]
  readonly resolve: (rows: readonly (readonly Row[])[]) => void
  readonly reject: (error: unknown) => void
}

/** Batches of one turn of the event loop share a transaction, because each transaction waits for the disk. */
class Sqlite implements Database {
  readonly kind = 'sqlite'
  readonly #file: string
  readonly #tables: string
  #opened: DatabaseSync | undefined
  #waiting: Waiting[] = []

  constructor(file: string, { tables }: DatabaseOptions) {
    this.#file = file
    this.#tables = tables
  }

  /** The first call opens the file. Before that, the start of the app has checked the store beside it. */
  get #db(): DatabaseSync {
    return (this.#opened ??= openFile(this.#file, this.#tables))
  }

  async rows(sql: string, values: readonly Value[] = []): Promise<readonly Row[]> {
    return this.#run({ sql, values })
  }

  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ statements, resolve, reject }) === 1) setImmediate(() => this.#commit())
    })
  }

  #commit(): void {
    const all = this.#waiting
    this.#waiting = []
    const ended: (() => void)[] = []
    try {
      this.#db.exec('begin immediate')
      for (const one of all) ended.push(this.#savepoint(one))
      this.#db.exec('commit')
    } catch (error) {
      if (this.#opened?.isTransaction) this.#opened.exec('rollback')
      for (const { reject } of all) reject(error)
      return
    }
    for (const end of ended) end()
  }

  /** A batch that fails leaves the others alone. */
  #savepoint({ statements, resolve, reject }: Waiting): () => void {
    this.#db.exec('savepoint one')
    try {
      const rows = statements.map((statement) => this.#run(statement))
      this.#db.exec('release one')
      return () => resolve(rows)
    } catch (error) {
      this.#db.exec('rollback to one; release one')
      return () => reject(error)
    }
  }

  #run({ sql, values = [] }: Statement): readonly Row[] {
    return this.#db.prepare(sql).all(...values) as unknown as readonly Row[]
  }
}

function openFile(file: string, tables: string): DatabaseSync {
  try {
    const db = new DatabaseSync(file)
    db.exec('pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000')
    db.exec(tables)
    return db
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const fix = 'Create the folder, and permit the process to write the file and its folder.'
    throw new Error(`The tables of the app in ${file} cannot be opened: ${why}. ${fix}`, { cause })
  }
}

class Postgres implements Database {
  readonly kind = 'postgres'
  readonly #schema: OwnSchema

  constructor(store: string, { name, tables, postgresOnly = '' }: DatabaseOptions) {
    this.#schema = new OwnSchema(store, name, `${tables}; ${postgresOnly}`)
  }

  async rows(sql: string, values: readonly Value[] = []): Promise<readonly Row[]> {
    const [rows = []] = await this.#transaction([{ sql, values }], false)
    return rows
  }

  batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    return this.#transaction(statements, true)
  }

  async #transaction(statements: readonly Statement[], isWhole: boolean): Promise<readonly (readonly Row[])[]> {
    const client = await this.#schema.connect()
    try {
      if (isWhole) await client.query('begin')
      const rows: (readonly Row[])[] = []
      for (const statement of statements) rows.push(await query(client, statement))
      if (isWhole) await client.query('commit')
      client.release()
      return rows
    } catch (error) {
      // A connection in the middle of a transaction is not used again.
      client.release(isWhole)
      throw error
    }
  }
}

async function query(client: PoolClient, { sql, values = [] }: Statement): Promise<readonly Row[]> {
  let n = 0
  const { rows } = await client.query<Row>(
    sql.replaceAll('?', () => `$${++n}`),
    [...values],
  )
  return rows
}
