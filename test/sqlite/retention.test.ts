// Retention reads in proportion to old events plus dead letters, not to their product.
import { StatementSync } from 'node:sqlite'
import { expect, it, vi } from 'vitest'
import { createClaimRequest, dead } from '../conformance/builders.ts'
import type { Settlement, Store } from '../../src/store/contract/index.ts'
import { event, freshFile, open, send } from './scratch.ts'

const LETTERS = 200
const ONE_AT_A_TIME = createClaimRequest({ flow: 'f', maxRuns: 1, maxEvents: 1 })
const POLICY = { events: { '': 0 }, runs: {}, deadLetters: Infinity, bytes: Infinity, lanesPerTenant: {} }

/** The number of events, each of which dies alone, in one lane. */
async function deadLetters(store: Store): Promise<void> {
  const place = { flow: 'f', key: 'k', quiet: 0, max: 0 }
  await send(store, ...Array.from({ length: LETTERS }, (_, n) => event(`e${n}`, place)))
  let settle: readonly Settlement[] = []
  for (let request = 1; request <= LETTERS + 1; request++) {
    const turn = { process: 'p', request, routes: 1, settle, claim: [ONE_AT_A_TIME], budget: 1_000_000 }
    settle = (await store.settleAndClaim(turn)).claimed.map(({ lane, token }) => {
      return { lane, token, outcome: dead, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] }
    })
  }
}

it('the dead letters of a lane are read once for all its events, which stay', async () => {
  const store = await open(freshFile())
  await deadLetters(store)
  expect((await store.stats()).deadLetters).toBe(LETTERS)
  const all = vi.spyOn(StatementSync.prototype, 'all')
  const { counts: did } = await store.maintain({ policy: POLICY, budget: 0 })
  const read = all.mock.results.reduce((sum, { value }) => sum + (value as readonly unknown[]).length, 0)
  all.mockRestore()
  expect(did.events).toBe(0)
  expect(read).toBeLessThan(5 * LETTERS)
})
