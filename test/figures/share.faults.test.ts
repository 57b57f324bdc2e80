// The order in which tenants are served, on both embedded stores: the short form of `npm run prove -- share`.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { served, shared } from './share-order.ts'

const LANES = 5_000
const MOST_ROUNDS = 2

describe.each(['memory', 'sqlite'])('%s', (kind) => {
  const address = (folder: string): string => (kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'turns.db')}`)

  test.each([undefined, 3])(
    'a tenant with many ready lanes delays the single lane of another by at most two rounds (concurrency %s)',
    async (concurrency) => {
      const load = {
        lanes: LANES,
        singles: 30,
        maxConcurrentRuns: 10,
        ...(concurrency === undefined ? {} : { concurrency }),
      }
      const figure = await inFolder((folder) => shared({ store: address(folder), ...load }))
      expect(figure.stillReady).toBeGreaterThan(LANES / 2)
      expect(figure.rounds, JSON.stringify(figure)).toBeLessThanOrEqual(MOST_ROUNDS)
    },
  )

  test('without shares the order is first ready, first served', async () => {
    const figure = await inFolder((folder) => served({ store: address(folder), lanes: LANES, seed: 1 }))
    expect(figure).toMatchObject({ lanes: LANES, inversions: 0 })
    expect(figure.mixed).toBeGreaterThan(LANES / 10)
  })
})
