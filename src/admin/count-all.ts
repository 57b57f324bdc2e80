// `countAll` counts matching records exactly, page by page, so that a million records do not block other calls.
import type { CountCall, CountReply, Store } from '../store/contract/index.ts'

const COUNT_BATCH = 10_000

export async function countAll(store: Store, what: Pick<CountCall, 'kind' | 'filter'>): Promise<number> {
  let sum = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const reply: CountReply = await store.count({ ...what, cursor, atMost: COUNT_BATCH })
    sum += reply.count
    cursor = reply.next
  }
  return sum
}
