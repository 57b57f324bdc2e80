// Ends a page early when its items become too large. The reader continues from the cursor, and no other call waits
// meanwhile.
import type { Page } from './lanes.ts'

export interface WeightedPageOptions<T> {
  readonly cursor: string
  readonly n: number
  readonly weightOf: (item: T) => number
  /** The page ends with the item that exceeds this weight, or soon after. */
  readonly most: number
  /** The number of items to read before any weight is known. */
  readonly first: number
  /**
   * The next read is at most this many times larger, estimated from the items so far. Use 1 where a wrong estimate
   * costs too much.
   */
  readonly growth: number
}

export async function findPageByWeight<T>(
  options: WeightedPageOptions<T>,
  find: (cursor: string, n: number) => Promise<Page<T>>,
): Promise<Page<T>> {
  const { n, weightOf, most, first, growth } = options
  const items: T[] = []
  let next: string | undefined = options.cursor
  let weight = 0
  for (let step = first; next !== undefined && items.length < n && weight < most;) {
    const page: Page<T> = await find(next, Math.min(step, n - items.length))
    next = page.next
    items.push(...page.items)
    weight += page.items.reduce((sum, item) => sum + weightOf(item), 0)
    // No match among the records read so far. The caller may continue from the cursor.
    if (page.items.length === 0) break
    const fitting = Math.ceil(((most - weight) / Math.max(weight, 1)) * items.length)
    step = Math.max(1, Math.min(step * growth, fitting))
  }
  return { items, next }
}
