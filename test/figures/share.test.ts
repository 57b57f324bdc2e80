// The short form of `npm run prove -- share`, on both stores.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { besideOpenWindows, eachOnce } from './share-many.ts'
import { served, shared } from './turns.ts'

const LANES = 5_000
const MOST_ROUNDS = 2
const manyIn = (folder: string): string => `sqlite:${join(folder, 'many.db')}`

describe.each(['memory', 'sqlite'])('%s', (kind) => {
  const address = (folder: string): string => (kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'turns.db')}`)

  test.each([undefined, 3])(
    'a tenant with many ready lanes delays the single lane of another by at most two rounds (concurrency %s)',
    async (concurrency) => {
      const load = { lanes: LANES, singles: 30, runsAtOnce: 10, ...(concurrency === undefined ? {} : { concurrency }) }
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

// When each turn looked at every tenant, these took 20,800 and 25,400 ms of processor time; now 22 and 561.
describe('many tenants (sqlite)', () => {
  test('20,000 open windows of others cost an event nothing', { timeout: 60_000 }, async () => {
    const load = { tenants: 20_000, events: 10 }
    const figure = await inFolder((folder) => besideOpenWindows({ store: manyIn(folder), ...load }))
    expect(figure.runs).toBe(load.events)
    expect(figure.cpu, JSON.stringify(figure)).toBeLessThan(2_000)
  })

  test('4,000 tenants with a ready lane each are through in the time of their runs', { timeout: 60_000 }, async () => {
    const figure = await inFolder((folder) => eachOnce({ store: manyIn(folder), tenants: 4_000 }))
    expect(figure.runs).toBe(4_000)
    expect(figure.cpu, JSON.stringify(figure)).toBeLessThan(8_000)
  })
})
