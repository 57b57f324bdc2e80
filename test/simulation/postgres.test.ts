// Random histories on PostgreSQL, judged by the reference model and the ledger, as on the other stores. A failure prints
// the seed and the path. The model predicts each reply, so calls run one after the other; test/postgres tests concurrent calls
// with many processes.
import { expect, inject, test } from 'vitest'
import { EmptyStores } from '../postgres/empty-stores.ts'
import { simulateLimits } from './limits/simulate.ts'
import { oneByOne } from './one-by-one.ts'
import { simulate, type Opened, type SimulationReport } from './simulate.ts'
import type { VirtualClock } from './virtual-clock.ts'

const HISTORIES = Number(process.env['HISTORIES'] ?? (process.env['SIMULATION'] === 'long' ? 500 : 100))
const SEED = Number(process.env['SEED'] ?? 20_260_801)
const PATIENCE = 3_600_000

function counterexample({ violation }: SimulationReport): string {
  if (violation === undefined) return ''
  return [`seed ${violation.seed}, path ${violation.path}`, ...violation.commands, violation.message].join('\n')
}

function opener(url: string, label: string): (clock: VirtualClock) => Promise<Opened> {
  const stores = new EmptyStores(url, label)
  return async (clock) => {
    stores.letGo()
    const store = await stores.open(clock)
    let current = store
    return {
      store: oneByOne(store),
      reopen: async () => oneByOne((current = await stores.again(current, clock))),
    }
  }
}

for (const { name, url } of inject('postgresServers').slice(-1)) {
  test(`${name}: ${HISTORIES} histories keep every rule`, { timeout: PATIENCE }, async () => {
    // Two at a time, each with schemas of its own: one continues while the other waits for the server.
    const halves = [SEED, SEED + 1].map((seed) =>
      simulate({ open: opener(url, `simulation_${seed}`), runs: HISTORIES / 2, seed }),
    )
    expect((await Promise.all(halves)).map(counterexample)).toEqual(['', ''])
  })

  test(`${name}: ${HISTORIES / 10} histories keep every limit`, { timeout: PATIENCE }, async () => {
    expect(
      counterexample(await simulateLimits({ open: opener(url, 'limits'), runs: HISTORIES / 10, seed: SEED })),
    ).toBe('')
  })
}
