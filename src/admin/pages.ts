// Reads lists from the store page by page, so that a million records do not block other calls.
import type { CountCall, CountReply, FindCall, FindReply, RecordKind, Store } from '../store/contract/index.ts'

export interface Page<T> {
  readonly items: readonly T[]
  /** The `cursor` of the next page; undefined after the last page. */
  readonly next: string | undefined
}

/** `findPages` yields all matching records, one page per store call. */
export async function* findPages<K extends RecordKind>(
  store: Store,
  call: Omit<FindCall<K>, 'cursor'>,
): AsyncGenerator<FindReply<K>['items']> {
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: FindReply<K> = await store.find({ ...call, cursor })
    yield page.items
    cursor = page.next
  }
}

const COUNT_BATCH = 10_000

/** `countAll` counts matching records exactly. */
export async function countAll(store: Store, call: Pick<CountCall, 'kind' | 'filter'>): Promise<number> {
  let sum = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const reply: CountReply = await store.count({ ...call, cursor, atMost: COUNT_BATCH })
    sum += reply.count
    cursor = reply.next
  }
  return sum
}

interface WeightedPageOptions<T> {
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
  /** The other items are left out, but count as read. */
  readonly isWanted?: (item: T) => boolean
}

/** A page ends after this many reads, however few of the items are wanted. */
const MAX_READS = 20

/**
 * `findPageByWeight` ends a page early when its items become too large. The reader continues from the cursor, and no
 * other call waits meanwhile.
 */
export async function findPageByWeight<T>(
  options: WeightedPageOptions<T>,
  find: (cursor: string, n: number) => Promise<Page<T>>,
): Promise<Page<T>> {
  const { n, weightOf, most, first, growth, isWanted = () => true } = options
  const items: T[] = []
  let next: string | undefined = options.cursor
  let weight = 0
  let read = 0
  for (
    let step = first, reads = 0;
    next !== undefined && items.length < n && weight < most && reads < MAX_READS;
    reads++
  ) {
    const page: Page<T> = await find(next, Math.min(step, n - items.length))
    next = page.next
    read += page.items.length
    items.push(...page.items.filter(isWanted))
    weight += page.items.reduce((sum, item) => sum + weightOf(item), 0)
    // No match among the records read so far. The caller may continue from the cursor.
    if (page.items.length === 0) break
    const fitting = Math.ceil(((most - weight) / Math.max(weight, 1)) * read)
    step = Math.max(1, Math.min(step * growth, fitting))
  }
  return { items, next }
}
