// The short form of `npm run prove -- lateness`. Other tests share the cores and the disk, and can only make a lane later,
// never earlier: so the best second of up to three measurements counts. The full form counts every second.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lateness, type Lateness } from './due-lanes.ts'
import { inFolder } from './folder.ts'

const P99_BELOW = 10
const TRIES = 3

async function mustBePunctual(measure: () => Promise<Lateness>): Promise<void> {
  const seen: Lateness[] = []
  for (let tries = 0; tries < TRIES && !seen.some(({ bestSecondP99 }) => bestSecondP99 < P99_BELOW); tries++) {
    seen.push(await measure())
  }
  for (const { lanes, earliest } of seen) {
    expect(lanes).toBe(4_000)
    expect(earliest).toBeGreaterThanOrEqual(0)
  }
  expect(Math.min(...seen.map(({ bestSecondP99 }) => bestSecondP99)), JSON.stringify(seen)).toBeLessThan(P99_BELOW)
}

const LOAD = { perSecond: 1_000, seconds: 4, warmUp: 1 }

test('at 1,000 due lanes a second on SQLite, the p99 from deadline to handler is below 10 ms', () =>
  mustBePunctual(() => inFolder((folder) => lateness({ ...LOAD, store: `sqlite:${join(folder, 'due.db')}` }))))
