// `ChurnMap` is a map for entries that come and go by the thousand per second. V8's own `Map` allocates a new table every few
// hundred changes. Each old table keeps the next one, with all its entries, from being collected until a full collection: entries
// then outlive their time, and so do those that follow. Here these tables hold only keys and numbers, and the values are in an
// array beside them.

/** The most array capacity that an empty map keeps after a burst. */
const MAX_RETAINED_CAPACITY = 4_096

export class ChurnMap<K extends string | number, V extends object> {
  readonly #indexes = new Map<K, number>()
  readonly #values: (V | undefined)[] = []
  readonly #freeIndexes: number[] = []

  get size(): number {
    return this.#indexes.size
  }

  has(key: K): boolean {
    return this.#indexes.has(key)
  }

  get(key: K): V | undefined {
    const index = this.#indexes.get(key)
    return index === undefined ? undefined : this.#values[index]
  }

  set(key: K, thing: V): void {
    let index = this.#indexes.get(key)
    if (index === undefined) this.#indexes.set(key, (index = this.#freeIndexes.pop() ?? this.#values.length))
    this.#values[index] = thing
  }

  delete(key: K): boolean {
    const index = this.#indexes.get(key)
    if (index === undefined) return false
    this.#values[index] = undefined
    this.#freeIndexes.push(index)
    this.#indexes.delete(key)
    if (this.#indexes.size === 0 && this.#values.length > MAX_RETAINED_CAPACITY) this.clear()
    return true
  }

  clear(): void {
    this.#indexes.clear()
    this.#values.length = 0
    this.#freeIndexes.length = 0
  }

  /** `keys` iterates in the order of insertion. */
  keys(): Iterable<K> {
    return this.#indexes.keys()
  }

  *values(): Generator<V, void> {
    for (const index of this.#indexes.values()) {
      const thing = this.#values[index]
      if (thing !== undefined) yield thing
    }
  }
}
