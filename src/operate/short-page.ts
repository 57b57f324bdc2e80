// A page that ends early when what is in it grows heavy: whoever reads goes on from its cursor, and nobody waits meanwhile.
import type { Page } from './lanes.ts'

export interface ShortPage<T> {
  readonly cursor: string
  readonly n: number
  readonly weightOf: (item: T) => number
  /** It ends with the item that makes it heavier than this, or soon after. */
  readonly most: number
  /** How many are looked at before anything is known of their weight. */
  readonly first: number
  /** So many times more are looked at next, by a guess from those before: 1 where a wrong guess would cost too much. */
  readonly growth: number
}

export async function shortPage<T>(
  asked: ShortPage<T>,
  find: (cursor: string, n: number) => Promise<Page<T>>,
): Promise<Page<T>> {
  const { n, weightOf, most, first, growth } = asked
  const items: T[] = []
  let next: string | undefined = asked.cursor
  let weight = 0
  for (let step = first; next !== undefined && items.length < n && weight < most;) {
    const page: Page<T> = await find(next, Math.min(step, n - items.length))
    next = page.next
    items.push(...page.items)
    weight += page.items.reduce((sum, item) => sum + weightOf(item), 0)
    // Nothing of the sort among so many: whoever asks may go on.
    if (page.items.length === 0) break
    const fitting = Math.ceil(((most - weight) / Math.max(weight, 1)) * items.length)
    step = Math.max(1, Math.min(step * growth, fitting))
  }
  return { items, next }
}
