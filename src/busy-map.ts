// A map in which things come and go by the thousand a second. V8's own makes itself a new table every few hundred changes, and the
// table that it leaves keeps the next one, with all that is in it, from being collected until the whole heap is: whatever is in
// such a map when that happens outlives its time, and so does what comes after it. Here those tables have keys and numbers only,
// and the things themselves stand beside them.

/** A crowd leaves no more room behind than this. */
const ROOM_KEPT = 4_096

export class BusyMap<K extends string | number, V extends object> {
  readonly #places = new Map<K, number>()
  readonly #things: (V | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#places.size
  }

  has(key: K): boolean {
    return this.#places.has(key)
  }

  get(key: K): V | undefined {
    const place = this.#places.get(key)
    return place === undefined ? undefined : this.#things[place]
  }

  set(key: K, thing: V): void {
    let place = this.#places.get(key)
    if (place === undefined) this.#places.set(key, (place = this.#free.pop() ?? this.#things.length))
    this.#things[place] = thing
  }

  delete(key: K): boolean {
    const place = this.#places.get(key)
    if (place === undefined) return false
    this.#things[place] = undefined
    this.#free.push(place)
    this.#places.delete(key)
    if (this.#places.size === 0 && this.#things.length > ROOM_KEPT) this.clear()
    return true
  }

  clear(): void {
    this.#places.clear()
    this.#things.length = 0
    this.#free.length = 0
  }

  /** In the order in which they came. */
  keys(): Iterable<K> {
    return this.#places.keys()
  }

  *values(): Generator<V, void> {
    for (const place of this.#places.values()) {
      const thing = this.#things[place]
      if (thing !== undefined) yield thing
    }
  }
}
