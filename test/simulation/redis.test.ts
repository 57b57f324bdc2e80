// Random histories on Redis, judged by the reference model and the ledger, as on the other stores. A failure prints the seed and the
// path. The calls run one after the other; test/redis tests concurrent calls with many processes.
import { expect, inject, test } from 'vitest'
import { EmptyStores } from '../redis/empty-stores.ts'
import { simulateLimits } from './limits/simulate.ts'
import { oneByOne } from './one-by-one.ts'
import { simulate, type Opened, type SimulationReport } from './simulate.ts'
import type { VirtualClock } from './virtual-clock.ts'

const HISTORIES = Number(process.env['HISTORIES'] ?? (process.env['SIMULATION'] === 'long' ? 500 : 60))
const SEED = Number(process.env['SEED'] ?? 20_260_801)
const PATIENCE = 3_600_000

function counterexample({ violation }: SimulationReport): string {
  if (violation === undefined) return ''
  return [`seed ${violation.seed}, path ${violation.path}`, ...violation.commands, violation.message].join('\n')
}

function opener(label: string): (clock: VirtualClock) => Promise<Opened> {
  const stores = new EmptyStores(inject('redisUrl'), label)
  return async (clock) => {
    await stores.letGo()
    let current = await stores.open(clock)
    return {
      store: oneByOne(current),
      reopen: async () => oneByOne((current = await stores.again(current, clock))),
    }
  }
}

test(`Redis: ${HISTORIES} histories keep every rule`, { timeout: PATIENCE }, async () => {
  // Two at a time: one continues while the other waits for the server.
  const halves = [SEED, SEED + 1].map((seed) =>
    simulate({ open: opener(`simulation-${seed}`), runs: HISTORIES / 2, seed }),
  )
  expect((await Promise.all(halves)).map(counterexample)).toEqual(['', ''])
})

test(`Redis: ${HISTORIES / 10} histories keep every limit`, { timeout: PATIENCE }, async () => {
  expect(counterexample(await simulateLimits({ open: opener('limits'), runs: HISTORIES / 10, seed: SEED }))).toBe('')
})
