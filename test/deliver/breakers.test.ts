// Tests the breakers in the store: concurrent decisions of several processes overwrite nothing, and an event is
// emitted only for a stored transition.
import { expect, onTestFinished, test } from 'vitest'
import { CLOSED } from '../../src/deliver/health/breaker.ts'
import { BreakerStore } from '../../src/deliver/health/breaker-store.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const FAILED = { kind: 'failed', now: 1_000, next: 2_000, disableAfter: 5_000 } as const
const GONE = { kind: 'gone', now: 3_000, disableAfter: 5_000 } as const

test('forget removes the breaker, even during a concurrent failure', async () => {
  const { one, other, before } = await twoOf()
  before(() => other.recordPost('ep', FAILED))
  await one.forget('ep')
  expect(await one.get('ep')).toEqual(CLOSED)
})

test('a probe does not enable an endpoint that was disabled meanwhile', async () => {
  const { one, other, before } = await twoOf()
  before(() => other.recordPost('ep', GONE))
  expect(await one.admit('ep', 'run', 3_000)).toEqual({ kind: 'wait', until: undefined })
  expect(await one.get('ep')).toMatchObject({ kind: 'disabled' })
})

test('only one of two concurrent probes is admitted', async () => {
  const { one, other, before } = await twoOf()
  before(async () => other.admit('ep', 'other', 3_000))
  expect(await one.admit('ep', 'run', 3_000)).toMatchObject({ kind: 'wait' })
  expect(await one.get('ep')).toMatchObject({ kind: 'half-open', probe: 'other' })
})

test('a failed write emits no transition', async () => {
  const { one, store } = await twoOf()
  store.writeDocs = () => Promise.resolve({ kind: 'conflict', now: 3_000 } as never)
  await expect(one.forget('ep')).rejects.toMatchObject({ code: 'CONFLICT' })
})

/** Creates two processes that know an endpoint whose breaker is open. `before` runs before the next write. */
async function twoOf(): Promise<{
  readonly one: BreakerStore
  readonly other: BreakerStore
  readonly store: Store
  readonly before: (act: () => Promise<unknown>) => void
}> {
  const clock = new VirtualClock()
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  const parts = { store: () => Promise.resolve(store), clock, docs: { findMissing: () => Promise.resolve([]) } }
  const [one, other] = [new BreakerStore(parts), new BreakerStore(parts)]
  for (let n = 0; n < 5; n++) await one.recordPost('ep', FAILED)
  const writeDocs = store.writeDocs.bind(store)
  const before = (act: () => Promise<unknown>): void => {
    store.writeDocs = async (call) => {
      store.writeDocs = writeDocs
      await act()
      return writeDocs(call)
    }
  }
  return { one, other, store, before }
}
