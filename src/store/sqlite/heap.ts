// `Heap` is a binary min-heap: it finds the first of many items that come and go one by one.

export class Heap<T> {
  readonly #isBefore: (one: T, other: T) => boolean
  #items: T[] = []

  constructor(isBefore: (one: T, other: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  add(item: T): void {
    let at = this.#items.length
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = this.#items[above]
      if (parent === undefined || !this.#isBefore(item, parent)) break
      this.#items[at] = parent
      at = above
    }
    this.#items[at] = item
  }

  takeFirst(): T | undefined {
    const first = this.#items[0]
    const last = this.#items.pop()
    if (last !== undefined && this.#items.length > 0) this.#sink(last)
    return first
  }

  /** `#sink` moves the item down until no child is before it. */
  #sink(item: T): void {
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      let child = this.#items[below]
      const right = this.#items[below + 1]
      if (child !== undefined && right !== undefined && this.#isBefore(right, child)) {
        child = right
        below++
      }
      if (child === undefined || !this.#isBefore(child, item)) break
      this.#items[at] = child
      at = below
    }
    this.#items[at] = item
  }
}
