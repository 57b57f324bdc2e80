// One claim may return all events of its lanes; no number of them is too large.
import { expect, it, onTestFinished } from 'vitest'
import { createEventToStore } from '../conformance/builders.ts'
import { openStore } from '../../src/index.ts'

const LANES = 20
const EACH = 9_000

it('a claim of 180,000 events succeeds', async () => {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  for (let lane = 0; lane < LANES; lane++) {
    const events = Array.from({ length: EACH }, (_, n) =>
      createEventToStore(`e${lane}/${n}`, { id: `e${lane}/${n}`, key: `k${lane}` }, Date.now()),
    )
    await store.append({ routes: 1, events })
  }
  const claim = {
    flow: 'flow',
    maxRuns: LANES,
    maxFailing: 1,
    maxSuspects: 1,
    maxPerGroup: undefined,
    blockOnCrash: false,
    take: 'all',
  } as const
  const caps = { maxEvents: EACH, maxBytes: 1e9, lease: 30_000 }
  const call = { process: 'p', request: 1, routes: 1, settle: [], claim: [{ ...claim, ...caps }], budget: 1_000 }
  const { claimed } = await store.settleAndClaim(call)
  expect(claimed.map(({ events }) => events.length)).toEqual(Array(LANES).fill(EACH))
})
