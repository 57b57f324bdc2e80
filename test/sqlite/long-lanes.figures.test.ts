// Removing thousands of events of one lane at once takes linear time, not quadratic. No other call of the store is served
// meanwhile.
import { describe, expect, it } from 'vitest'
import { laneId } from '../../src/model/identity.ts'
import { createClaimRequest, partial } from '../conformance/builders.ts'
import type { PurgeCall, Store } from '../../src/store/contract/index.ts'
import { event, freshFile, open, send } from './scratch.ts'

async function waiting(count: number): Promise<Store> {
  const store = await open(freshFile())
  const words = { key: 'k', tenant: 'acme' }
  await send(store, ...Array.from({ length: count }, (_, n) => event(`e${n}`, words)))
  return store
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const TURN = { process: 'p', budget: 1, routes: 1 } as const

describe('a long lane on SQLite', () => {
  it.each<[string, PurgeCall['what']]>([
    ['key', { kind: 'lanes', ids: [laneId('flow', 'k')] }],
    ['tenant', { kind: 'tenant', tenant: 'acme' }],
  ])('is purged by %s in no more time than it is long', async (_by, what) => {
    const store = await waiting(8_000)
    const took = await timed(async () => {
      while ((await store.purge({ what, n: 500 })).more);
    })
    expect((await store.get({ kind: 'lanes', id: laneId('flow', 'k') })).item).toBeUndefined()
    expect(took).toBeLessThan(4_000)
  })

  it('settling takes linear time, if a run takes all events and each of them failed', async () => {
    const store = await waiting(40_000)
    const claim = [createClaimRequest({ maxEvents: 40_000, maxBytes: 1e9 })]
    const { claimed } = await store.settleAndClaim({ ...TURN, request: 1, settle: [], claim })
    const [run] = claimed
    expect(run?.events).toHaveLength(40_000)
    const outcome = partial({ retry: (run?.events ?? []).map(({ id }) => id) })
    const ended = { lane: run?.lane ?? '', token: run?.token ?? 0, outcome, whileRunning: 'window', keep: 0 } as const
    const settle = [{ ...ended, attempt: undefined, publish: [] }]
    const took = await timed(() => store.settleAndClaim({ ...TURN, request: 2, settle, claim: [] }))
    expect(took).toBeLessThan(4_000)
  })
})
