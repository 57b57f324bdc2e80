// The short form of `npm run prove -- lateness`. Other tests share the cores and the disk, and can only make a lane later,
// never earlier: the best second of up to three measurements counts. The full form counts every second.
import { expect, test } from 'vitest'
import { lateness, type Lateness } from './due-lanes.ts'
import { inFolder } from './folder.ts'

const P99_BELOW = 10
const TRIES = 3

test('at 1,000 due lanes a second, p99 from deadline to handler is below 10 ms', async () => {
  const seen: Lateness[] = []
  for (let tries = 0; tries < TRIES && !seen.some(({ bestSecondP99 }) => bestSecondP99 < P99_BELOW); tries++) {
    seen.push(await inFolder((folder) => lateness({ perSecond: 1_000, seconds: 4, warmUp: 1, folder })))
  }
  for (const { lanes, earliest } of seen) {
    expect(lanes).toBe(4_000)
    expect(earliest).toBeGreaterThanOrEqual(0)
  }
  expect(Math.min(...seen.map(({ bestSecondP99 }) => bestSecondP99)), JSON.stringify(seen)).toBeLessThan(P99_BELOW)
})
