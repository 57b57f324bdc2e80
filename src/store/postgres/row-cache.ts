// `RowCache` and `QueryCache` hold the rows of one transaction. The rules decide in passes. A read that the cache cannot answer
// is recorded as a miss and returns nothing; the decisions of that pass are discarded. The transaction then loads all misses,
// and the rules decide again. The pass without a miss is the decision, and its changes are written.
import type { Row, Value } from './values.ts'

/** `Db` is the open transaction. */
export interface Db {
  /** A read-only transaction locks and writes nothing. */
  readonly readOnly: boolean
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

/** `Statement` is a statement to send. */
export type Statement = readonly [sql: string, values: readonly unknown[]]

/** `TransactionCache` is what a transaction has read so far, and what it has yet to load. */
export interface TransactionCache {
  /** `resetPass` discards what the rules changed and keeps what was loaded. */
  resetPass(): void
  readonly hasMisses: boolean
  /** `load` sends all its queries at once; the server executes them in that order. */
  load(db: Db): Promise<unknown>
}

/** `TransactionTable` is one or more tables, as the rules see them in one transaction. */
export interface TransactionTable extends TransactionCache {
  /**
   * `buildWrites` returns the changes of the last pass, in the order in which they are made. A fault here occurs before
   * anything is sent.
   */
  buildWrites(): readonly Statement[]
}

/** `CachedTable` loads its caches in their order. */
export abstract class CachedTable implements TransactionTable {
  protected abstract readonly caches: readonly TransactionCache[]

  resetPass(): void {
    for (const cache of this.caches) cache.resetPass()
  }

  get hasMisses(): boolean {
    return this.caches.some((cache) => cache.hasMisses)
  }

  load(db: Db): Promise<unknown> {
    return Promise.all(this.caches.map((cache) => cache.load(db)))
  }

  abstract buildWrites(): readonly Statement[]
}

type CacheEntry<T> = readonly [key: string, row: T | undefined]

/** `RowCache` holds rows by key, and what the rules did to them. */
export class RowCache<T> implements TransactionCache {
  readonly #loaded = new Map<string, T | undefined>()
  readonly #changed = new Map<string, T | undefined>()
  readonly #select: ((db: Db, keys: readonly string[]) => Promise<Iterable<CacheEntry<T>>>) | undefined
  #misses = new Set<string>()

  /** `select` reads the rows of some keys. Without it, the table loads the rows itself. */
  constructor(select?: (db: Db, keys: readonly string[]) => Promise<Iterable<CacheEntry<T>>>) {
    this.#select = select
  }

  /** `get` returns undefined if the row does not exist, or is not loaded yet. */
  get(key: string): T | undefined {
    if (this.#changed.has(key)) return this.#changed.get(key)
    if (!this.#loaded.has(key)) this.#misses.add(key)
    return this.#loaded.get(key)
  }

  /** `isLoaded` returns whether the stored state of the key is known, even if the rules changed the row. */
  isLoaded(key: string): boolean {
    return this.#loaded.has(key)
  }

  /** `stored` returns the row as the server has it, even if the rules changed it. */
  stored(key: string): T | undefined {
    return this.#loaded.get(key)
  }

  put(key: string, row: T): void {
    this.#changed.set(key, row)
  }

  /** `remove` needs to know the stored row, so an unknown key is a miss. */
  remove(key: string): void {
    if (!this.#changed.has(key) && !this.#loaded.has(key)) this.#misses.add(key)
    this.#changed.set(key, undefined)
  }

  resetPass(): void {
    this.#changed.clear()
    this.#misses.clear()
  }

  get hasMisses(): boolean {
    return this.#misses.size > 0
  }

  /** `takeMisses` returns the keys to load, once, in the order in which all transactions lock. */
  takeMisses(): readonly string[] {
    const keys = [...this.#misses].toSorted()
    this.#misses = new Set()
    return keys
  }

  /** `setLoaded` stores a loaded row; undefined if the key has no row. */
  setLoaded(key: string, row: T | undefined): void {
    this.#loaded.set(key, row)
  }

  /** `addLoaded` stores loaded rows and returns their keys. */
  addLoaded(rows: readonly CacheEntry<T>[]): readonly string[] {
    return rows.map(([key, row]) => {
      this.#loaded.set(key, row)
      return key
    })
  }

  /** `reload` makes the next load read the stored rows again. */
  reload(): void {
    for (const key of this.storedKeys) this.#misses.add(key)
  }

  async load(db: Db): Promise<void> {
    if (this.#select === undefined || this.#misses.size === 0) return
    const keys = this.takeMisses()
    for (const key of keys) this.#loaded.set(key, undefined)
    for (const [key, row] of await this.#select(db, keys)) this.#loaded.set(key, row)
  }

  /** `loadedKeys` includes keys without a row, which another transaction may have inserted since. */
  get loadedKeys(): readonly string[] {
    return [...this.#loaded.keys()]
  }

  /** `storedKeys` returns the keys of the rows that the server has, even if the rules changed them. */
  get storedKeys(): readonly string[] {
    return [...this.#loaded].flatMap(([key, row]) => (row === undefined ? [] : [key]))
  }

  /** `values` returns every known row, as the rules have left it. */
  *values(): Iterable<T> {
    for (const row of this.#changed.values()) if (row !== undefined) yield row
    for (const [key, row] of this.#loaded) if (row !== undefined && !this.#changed.has(key)) yield row
  }

  get changes(): ReadonlyMap<string, T | undefined> {
    return this.#changed
  }

  /** `changedRows` returns the rows to write. */
  get changedRows(): readonly T[] {
    return [...this.#changed.values()].filter((row) => row !== undefined)
  }

  /** `removedKeys` returns the keys of stored rows that the rules removed. */
  get removedKeys(): readonly string[] {
    return [...this.#changed].flatMap(([key, row]) =>
      row === undefined && this.#loaded.get(key) !== undefined ? [key] : [],
    )
  }
}

/** `QueryCache` holds query results. Each query is sent once, and its result serves all later passes. */
export class QueryCache<Q extends readonly unknown[], A> implements TransactionCache {
  readonly #results = new Map<string, A>()
  readonly #misses = new Map<string, Q>()
  readonly #run: (db: Db, queries: readonly Q[]) => Promise<readonly A[]>

  /** `run` returns the results of all queries, in their order. */
  constructor(run: (db: Db, queries: readonly Q[]) => Promise<readonly A[]>) {
    this.#run = run
  }

  /** `get` returns undefined if the result is not loaded yet. */
  get(...query: Q): A | undefined {
    const name = JSON.stringify(query)
    const result = this.#results.get(name)
    if (result === undefined) this.#misses.set(name, query)
    return result
  }

  get hasMisses(): boolean {
    return this.#misses.size > 0
  }

  resetPass(): void {
    this.#misses.clear()
  }

  async load(db: Db): Promise<void> {
    const queries = [...this.#misses]
    this.#misses.clear()
    if (queries.length === 0) return
    const results = await this.#run(
      db,
      queries.map(([, query]) => query),
    )
    for (const [at, [name]] of queries.entries()) this.#results.set(name, results[at] as A)
  }
}

/** `each` runs queries one by one, in one round trip. */
export function each<Q extends readonly unknown[], A>(
  run: (db: Db, ...query: Q) => Promise<A>,
): (db: Db, queries: readonly Q[]) => Promise<readonly A[]> {
  return (db, queries) => Promise.all(queries.map((query) => run(db, ...query)))
}

/** `buildUpsert` builds a statement that reads rows from one JSON array and writes the named columns. */
export function buildUpsert(table: string, columns: string, keys: string): string {
  const others = columns.split(', ').filter((column) => !keys.split(', ').includes(column))
  const sets = others.map((column) => `${column} = excluded.${column}`)
  return `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $1)
    on conflict (${keys}) do ${sets.length === 0 ? 'nothing' : `update set ${sets.join(', ')}`}`
}

/** `from` names a table and its column. */
export function buildDelete(from: string, keys: readonly (string | number)[]): readonly Statement[] {
  return keys.length === 0 ? [] : [[`delete from ${from} = any($1)`, [keys]]]
}

export function bindJson(sql: string, rows: readonly Readonly<Record<string, Value>>[]): readonly Statement[] {
  return rows.length === 0 ? [] : [[sql, [JSON.stringify(rows)]]]
}
