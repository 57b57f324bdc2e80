// The short form of `npm run prove -- watched`. One pair means little on a busy machine, so the best of a few pairs counts.
// A slowdown by a fifth would still fail all of them. The full form counts all of sixty.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { watchedPairs } from './watched.ts'

test('an open stream and a scrape per second cost almost nothing of the receiving rate', async () => {
  const seen = await inFolder((folder) =>
    watchedPairs({ folder, servers: 1, pairsOfEach: 5, seconds: 1, progress: () => {} }),
  )
  expect(seen.changesSeen).toBeGreaterThan(1_000)
  expect(seen.leastCost, JSON.stringify(seen)).toBeLessThan(0.05)
})
