// The short form of `npm run prove -- watched`. A pair says little on a machine that does other things: the best of a few counts,
// which whoever slows the server down by a fifth does not come to. The full form counts all of sixty.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { watchedPairs } from './watched.ts'

test('an open stream and a scrape a second cost next to nothing of the receiving rate', async () => {
  const seen = await inFolder((folder) =>
    watchedPairs({ folder, servers: 1, pairsOfEach: 5, seconds: 1, progress: () => {} }),
  )
  expect(seen.changesSeen).toBeGreaterThan(1_000)
  expect(seen.leastCost, JSON.stringify(seen)).toBeLessThan(0.05)
})
