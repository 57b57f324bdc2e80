// `RowCache` keeps rows of a table from one commit to the next, with the versions at which this process last saw them. A decision on
// a row that another process has changed since fails its check, so a stale row costs time and nothing else.
import { ChurnMap } from '../../churn-map.ts'

/** The length of a version: the first bytes of a row. */
export const VERSION_LENGTH = 10

export interface StoredRow<T> {
  readonly version: string
  readonly row: T
}

/** The size of each of the two generations. Rows that were not used since the generation before last are forgotten. */
const GENERATION_SIZE = 10_000

export class RowCache<T> {
  #rows = new ChurnMap<string, StoredRow<T>>()
  #previous = new ChurnMap<string, StoredRow<T>>()

  get(key: string): StoredRow<T> | undefined {
    return this.#rows.get(key) ?? this.#previous.get(key)
  }

  set(key: string, stored: StoredRow<T>): void {
    this.#rows.set(key, stored)
    if (this.#rows.size < GENERATION_SIZE) return
    this.#previous = this.#rows
    this.#rows = new ChurnMap()
  }

  delete(key: string): void {
    this.#rows.delete(key)
    this.#previous.delete(key)
  }

  clear(): void {
    this.#rows = new ChurnMap()
    this.#previous = new ChurnMap()
  }
}
