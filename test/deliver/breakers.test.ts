// Breakers in the store: of what several processes decide at once nothing is overwritten, and nobody is told of what was not written.
import { expect, onTestFinished, test } from 'vitest'
import { CLOSED } from '../../src/deliver/breaker.ts'
import { Breakers } from '../../src/deliver/breakers.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const FAILED = { kind: 'failed', now: 1_000, next: 2_000 } as const
const GONE = { kind: 'gone', now: 3_000 } as const

test('to forget how it fared is to forget it, also while somebody notes that it fails', async () => {
  const { one, other, before } = await twoOf()
  before(() => other.ended('ep', FAILED))
  await one.forget('ep')
  expect(await one.of('ep')).toEqual(CLOSED)
})

test('who is about to probe it does not enable what somebody has disabled meanwhile', async () => {
  const { one, other, before } = await twoOf()
  before(() => other.ended('ep', GONE))
  expect(await one.admit('ep', 'run', 3_000)).toEqual({ kind: 'wait', until: undefined })
  expect(await one.of('ep')).toMatchObject({ kind: 'disabled' })
})

test('of two that may probe it one does', async () => {
  const { one, other, before } = await twoOf()
  before(() => other.admit('ep', 'other', 3_000))
  expect(await one.admit('ep', 'run', 3_000)).toMatchObject({ kind: 'wait' })
  expect(await one.of('ep')).toMatchObject({ kind: 'half-open', probe: 'other' })
})

test('what cannot be written is not said to be', async () => {
  const { one, store } = await twoOf()
  store.writeDocs = () => Promise.resolve({ kind: 'conflict', now: 3_000 } as never)
  await expect(one.forget('ep')).rejects.toMatchObject({ code: 'NOT_POSSIBLE' })
})

/** Two processes that know of an endpoint whose breaker is open. `before`: this comes before the next that is written. */
async function twoOf(): Promise<{
  readonly one: Breakers
  readonly other: Breakers
  readonly store: Store
  readonly before: (act: () => Promise<unknown>) => void
}> {
  const clock = new VirtualClock()
  const store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
  const parts = { store: () => Promise.resolve(store), clock, gone: () => Promise.resolve([]) }
  const [one, other] = [new Breakers(parts), new Breakers(parts)]
  for (let n = 0; n < 5; n++) await one.ended('ep', FAILED)
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
