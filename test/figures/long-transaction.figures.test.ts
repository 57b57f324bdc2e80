// The short form of `npm run prove -- postgres-long-transaction`: a few seconds of each part, after as many runs as half a
// minute would have had. With so few claims, only the median is compared. The alert itself is tested in
// test/postgres/vacuum-stats.test.ts.
import { expect, test } from 'vitest'
import { longTransaction } from '../postgres/long-transaction.ts'
import { startServer } from '../postgres/server.ts'

const RATE = 400
/** Below this value, the machine determines the result. */
const LEAST_MILLIS = 5
/** By then every process has noticed the old snapshot. */
const NOTICED = 11_000

test(
  'beside an open transaction, 400 runs per second continue, and a claim takes at most twice as long',
  { timeout: 60_000 },
  async () => {
    const server = await startServer({ version: 18 })
    try {
      const plan = { rate: RATE, warmUp: 1_500, before: 3_000, held: 3_000, after: 0 }
      const figure = await longTransaction({ ...plan, url: server.url, burst: 12_000, unmeasured: NOTICED })
      const { before, held } = figure
      const shown = JSON.stringify(figure)
      expect(before.runsPerSecond, shown).toBeGreaterThanOrEqual(0.9 * RATE)
      expect(held.runsPerSecond, shown).toBeGreaterThanOrEqual(0.9 * RATE)
      expect(held.p50, shown).toBeLessThanOrEqual(2 * Math.max(LEAST_MILLIS, before.p50))
    } finally {
      await server.stop()
    }
  },
)
