// Tests that the histories of many endpoints are written in a few commits, and that each note counts once despite
// failures.
import { expect, onTestFinished, test } from 'vitest'
import { HistoryStore } from '../../src/deliver/health/history-store.ts'
import type { PostNote } from '../../src/deliver/health/history.ts'
import { openStore } from '../../src/store/open.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const NO_TEXTS = (): never => {
  throw new Error('Nothing here is confidential.')
}
const IDS: readonly string[] = Array.from({ length: 120 }, (_, n) => `ep_${n}`)
const NOTE: PostNote = {
  run: 'r',
  attempt: 1,
  at: 1_000,
  ms: 5,
  status: 200,
  answer: '',
  error: '',
  latency: 7,
  isLast: false,
}

test('many histories are written together, and a failed write loses and doubles nothing', async () => {
  const clock = new VirtualClock()
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  const writeDocs = store.writeDocs.bind(store)
  let calls = 0
  let failing = 2
  store.writeDocs = (call) => (++calls === failing ? Promise.reject(new Error('no disk')) : writeDocs(call))
  const histories = new HistoryStore({
    store: () => Promise.resolve(store),
    clock,
    docs: { findMissing: () => Promise.resolve([]) },
    texts: NO_TEXTS,
  })
  const delivered = async (): Promise<ReadonlySet<number>> => {
    const all = await histories.getAll(IDS)
    expect(all.size).toBe(IDS.length)
    return new Set([...all.values()].map(({ steps }) => steps.reduce((sum, step) => sum + step.delivered, 0)))
  }
  for (const id of IDS) histories.note(id, NOTE)
  await histories.flush()
  expect(calls).toBe(2)
  failing = 0
  expect(await delivered()).toEqual(new Set([1]))
  expect(calls).toBe(4)
  // Another process has written some of the histories meanwhile, so those of the same commit are read again.
  const other = new HistoryStore({
    store: () => Promise.resolve(store),
    clock,
    docs: { findMissing: () => Promise.resolve([]) },
    texts: NO_TEXTS,
  })
  for (const id of IDS) histories.note(id, NOTE)
  for (const id of IDS.slice(0, 60)) other.note(id, NOTE)
  await Promise.all([histories.flush(), other.flush()])
  const [first, rest] = [IDS.slice(0, 60), IDS.slice(60)]
  const sums = async (ids: readonly string[]): Promise<ReadonlySet<number>> =>
    new Set(
      [...(await histories.getAll(ids)).values()].map(({ steps }) =>
        steps.reduce((sum, step) => sum + step.delivered, 0),
      ),
    )
  expect([await sums(first), await sums(rest)]).toEqual([new Set([3]), new Set([2])])
})
