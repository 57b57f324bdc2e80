// `TableView` is one table as a transaction sees it: a hash of rows, and an index of texts by which rows are found in order. The
// rules decide in passes. A read that the view cannot answer is recorded as a miss and returns nothing; all misses are loaded, and
// the rules decide again. The pass without a miss is the decision.
import type { RedisArgument } from './client.ts'
import { RangeView } from './range-view.ts'
import { VERSION_LENGTH, type RowCache, type StoredRow } from './row-cache.ts'
import type { CommitRequest, IndexGroup, LoadRequest } from './script-requests.ts'
import { keyOfMember, toMember, type Range } from './texts.ts'

/** `TransactionPart` is what a transaction does with each of its tables. */
export interface TransactionPart {
  /** Discards what the rules changed, and keeps what was loaded. */
  resetPass(): void
  readonly hasMisses: boolean
  addReads(load: LoadRequest): void
  addCommit(commit: CommitRequest, version: string): void
  /** Stores the changes of the last pass in the cache of the process. */
  updateCache(version: string): void
  /** Forgets what was loaded, because another commit may have changed it. */
  forgetLoaded(): void
}

export interface TableSpec<T> {
  readonly name: string
  encode(row: T): string
  decode(text: string, key: string): T
  /** The texts by which the row is found. */
  texts(row: T, key: string): readonly string[]
}

interface ChangedRow<T> {
  readonly row: T | undefined
  readonly members: readonly string[]
}

export interface TableOptions<T> {
  readonly prefix: string
  readonly cache?: RowCache<T> | undefined
}

const NO_MEMBERS: readonly string[] = []

export class TableView<T> implements TransactionPart {
  readonly hash: string
  readonly set: string
  /** A row that this process has not seen is taken for a new one. The check of the commit fails if it is not. */
  assumesNew = false
  readonly #spec: TableSpec<T>
  readonly #cache: RowCache<T> | undefined
  readonly #loaded = new Map<string, StoredRow<T> | undefined>()
  readonly #changed = new Map<string, ChangedRow<T>>()
  readonly #touched = new Set<string>()
  readonly #misses = new Set<string>()
  readonly #ranges = new RangeView()
  readonly #checkedRanges = new Map<string, Range>()
  readonly #groups = new Map<string, readonly IndexGroup[]>()
  readonly #missingGroups = new Map<string, Range & { readonly n: number }>()
  readonly #counts = new Map<string, number>()
  readonly #missingCounts = new Map<string, Range>()

  constructor(spec: TableSpec<T>, { prefix, cache }: TableOptions<T>) {
    this.#spec = spec
    this.#cache = cache
    this.hash = `${prefix}:${spec.name}`
    this.set = `${this.hash}:index`
  }

  get(key: string): T | undefined {
    this.#touched.add(key)
    const changed = this.#changed.get(key)
    return changed === undefined ? this.#stored(key)?.row : changed.row
  }

  /** `peek` returns the row without a check that it stays as it is. */
  peek(key: string): T | undefined {
    const changed = this.#changed.get(key)
    return changed === undefined ? this.#stored(key)?.row : changed.row
  }

  #stored(key: string): StoredRow<T> | undefined {
    const known = this.#loaded.get(key)
    if (known !== undefined || this.#loaded.has(key)) return known
    const cached = this.#cache?.get(key)
    if (cached !== undefined) this.#loaded.set(key, cached)
    else if (this.assumesNew) this.#loaded.set(key, undefined)
    else this.#misses.add(key)
    return cached
  }

  put(key: string, row: T): void {
    this.#change(key, row)
  }

  /** `putNew` puts a row whose key is new to the store, so nothing is loaded for it. */
  putNew(key: string, row: T): void {
    if (!this.#loaded.has(key)) this.#loaded.set(key, undefined)
    this.#set(key, row)
  }

  remove(key: string): void {
    this.#change(key, undefined)
  }

  #change(key: string, row: T | undefined): void {
    this.#touched.add(key)
    // The commit removes the members of the stored row.
    this.#stored(key)
    this.#set(key, row)
  }

  #set(key: string, row: T | undefined): void {
    const before = this.#changed.get(key)?.members ?? this.#members(this.#loaded.get(key)?.row, key)
    const members = this.#members(row, key)
    this.#changed.set(key, { row, members })
    this.#ranges.change(before, members)
  }

  /** `changed` returns the row that this pass has put. */
  changed(key: string): T | undefined {
    return this.#changed.get(key)?.row
  }

  /** `changedRows` yields the rows that this pass has put. */
  *changedRows(): Iterable<T> {
    for (const { row } of this.#changed.values()) if (row !== undefined) yield row
  }

  /**
   * `find` returns the first `n` rows of a range. With `isChecked`, the commit fails if another transaction changes the result; a
   * caller that only needs some rows, and checks those that it changes, leaves it out.
   */
  find(range: Range, n: number, { isChecked = true }: { readonly isChecked?: boolean } = {}): readonly T[] {
    const members = this.#ranges.find(range, n)
    if (isChecked && range.isReversed !== true) this.#checkedRanges.set(`${range.from}\0${range.to}`, range)
    const rows: T[] = []
    for (const member of members) {
      const key = keyOfMember(member)
      const row = isChecked ? this.get(key) : this.peek(key)
      if (row !== undefined) rows.push(row)
    }
    return rows
  }

  /** `findGroups` returns the groups of a range with their first members. It does not know what the transaction changed. */
  findGroups(range: Range, n: number): readonly IndexGroup[] {
    const id = `${range.from}\0${range.to}`
    const found = this.#groups.get(id)
    if (found === undefined) this.#missingGroups.set(id, { ...range, n })
    return found ?? []
  }

  /** `count` returns the number of members in a range. It does not know what the transaction changed. */
  count(range: Range): number {
    const id = `${range.from}\0${range.to}`
    const found = this.#counts.get(id)
    if (found === undefined) this.#missingCounts.set(id, range)
    return found ?? 0
  }

  #members(row: T | undefined, key: string): readonly string[] {
    return row === undefined ? NO_MEMBERS : this.#spec.texts(row, key).map((text) => toMember(text, key))
  }

  resetPass(): void {
    this.#changed.clear()
    this.#touched.clear()
    this.#misses.clear()
    this.#ranges.resetPass()
    this.#checkedRanges.clear()
    this.#missingGroups.clear()
    this.#missingCounts.clear()
  }

  get hasMisses(): boolean {
    return (
      this.#misses.size > 0 || this.#ranges.hasMisses || this.#missingGroups.size > 0 || this.#missingCounts.size > 0
    )
  }

  addReads(load: LoadRequest): void {
    if (this.#misses.size > 0) {
      const keys = [...this.#misses]
      load.readRows(this.hash, keys, (rows) => this.#load(keys, rows))
    }
    for (const range of this.#ranges.takeMisses()) {
      load.readRange(this.set, this.hash, range, ({ members, rows }) => {
        this.#ranges.add(range, members)
        this.#load(members.map(keyOfMember), rows)
      })
    }
    for (const [id, range] of this.#missingGroups)
      load.readGroups(this.set, range, (groups) => this.#groups.set(id, groups))
    for (const [id, range] of this.#missingCounts) load.count(this.set, range, (count) => this.#counts.set(id, count))
    this.#misses.clear()
    this.#missingGroups.clear()
    this.#missingCounts.clear()
  }

  /** `setLoaded` stores rows that were loaded by other means. */
  setLoaded(keys: readonly string[], rows: readonly (Buffer | null)[]): void {
    this.#load(keys, rows)
  }

  #load(keys: readonly string[], rows: readonly (Buffer | null)[]): void {
    for (const [at, key] of keys.entries()) {
      const row = rows[at]
      const stored = row === null || row === undefined ? undefined : this.#decode(key, row.toString())
      this.#loaded.set(key, stored)
      if (stored === undefined) this.#cache?.delete(key)
      else this.#cache?.set(key, stored)
    }
  }

  #decode(key: string, text: string): StoredRow<T> {
    return { version: text.slice(0, VERSION_LENGTH), row: this.#spec.decode(text.slice(VERSION_LENGTH), key) }
  }

  addCommit(commit: CommitRequest, version: string): void {
    for (const key of this.#touched) {
      const stored = this.#loaded.get(key)
      commit.checkRow(this.hash, key, { version: stored?.version ?? '', onConflict: () => this.#forget(key) })
    }
    for (const range of this.#checkedRanges.values()) {
      const known = this.#ranges.known(range)
      if (known !== undefined)
        commit.checkRange(this.set, { ...range, n: known.n }, { members: known.members, onConflict: () => {} })
    }
    for (const [key, changed] of this.#changed) this.#write(commit, key, changed, version)
  }

  // oxlint-disable-next-line max-params -- the parts of one row
  #write(commit: CommitRequest, key: string, changed: ChangedRow<T>, version: string): void {
    const stored = this.#loaded.get(key)
    const before = this.#members(stored?.row, key)
    const after = changed.members
    if (changed.row !== undefined) commit.write('HSET', this.hash, key, version + this.#spec.encode(changed.row))
    else if (stored !== undefined) commit.write('HDEL', this.hash, key)
    for (const member of before) if (!after.includes(member)) commit.write('ZREM', this.set, member)
    const added: RedisArgument[] = []
    for (const member of after) if (!before.includes(member)) added.push('0', member)
    if (added.length > 0) commit.write('ZADD', this.set, ...added)
  }

  #forget(key: string): void {
    this.#cache?.delete(key)
    this.assumesNew = false
  }

  updateCache(version: string): void {
    if (this.#cache === undefined) return
    for (const [key, { row }] of this.#changed) {
      if (row === undefined) this.#cache.delete(key)
      else this.#cache.set(key, { version, row })
    }
  }

  forgetLoaded(): void {
    this.#loaded.clear()
    this.#ranges.forget()
    this.#groups.clear()
    this.#counts.clear()
  }
}
