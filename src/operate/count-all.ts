// An exact count, however many there are: by pages, so that a million records hold nobody up.
import type { CountCall, CountReply, Store } from '../store/contract/index.ts'

const COUNTED_AT_ONCE = 10_000

export async function countAll(store: Store, what: Pick<CountCall, 'kind' | 'filter'>): Promise<number> {
  let sum = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const reply: CountReply = await store.count({ ...what, cursor, atMost: COUNTED_AT_ONCE })
    sum += reply.count
    cursor = reply.next
  }
  return sum
}
