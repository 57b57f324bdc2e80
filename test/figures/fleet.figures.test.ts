// A failing endpoint delays no other: three short pairs of runs. Others may use the machine, so a second
// measurement counts if the first one fails. Five longer pairs are part of `npm run prove -- deliver-fleet`.
import { expect, it } from 'vitest'
import { fleetPairs, type PairsReport } from '../deliver/fleet-pairs.ts'
import { inFolder } from './folder.ts'

const MOST = 1.5
const TRIES = 2

it(
  'the p99 of healthy endpoints beside failing ones is at most 1.5 times the p99 without them',
  { timeout: 120_000 },
  async () => {
    const seen: PairsReport[] = []
    while (seen.length < TRIES && !seen.some(({ ratio }) => ratio <= MOST))
      seen.push(await inFolder((folder) => fleetPairs({ folder, events: 600, pairs: 3, seed: 1 })))
    console.log(JSON.stringify(seen))
    expect(seen.flatMap(({ complaints }) => complaints)).toEqual([])
    expect(Math.min(...seen.map(({ ratio }) => ratio)), JSON.stringify(seen)).toBeLessThanOrEqual(MOST)
  },
)
