// Random histories on the embedded stores, checked by the reference model and the ledger. A failure prints the seed and
// the path: `node test/simulation/hunt.ts <store> 1 <seed> <path>` runs it again.
import { expect, test } from 'vitest'
import { LIMITS } from './limits/commands.ts'
import { saturated, simulateLimits } from './limits/simulate.ts'
import { simulate, type SimulationReport } from './simulate.ts'
import { opener, STORES, type StoreName } from './stores.ts'

/** `npm run test:faults` runs more histories than `npm test`; `npm run prove -- simulation` runs 10,000 on SQLite. */
const IS_LONG = process.env['SIMULATION'] === 'long'
const HISTORIES: Readonly<Record<StoreName, number>> = IS_LONG
  ? { memory: 8_000, sqlite: 2_000 }
  : { memory: 1_000, sqlite: 300 }
const LIMIT_HISTORIES: Readonly<Record<StoreName, number>> = IS_LONG
  ? { memory: 5_000, sqlite: 200 }
  : { memory: 1_000, sqlite: 50 }
const EXPLAINED = ['snoozed', 'blocked', 'empty', 'held', 'idle', 'lapsed', 'ready', 'retrying', 'running', 'waiting']
const SEED = 20_260_801
const PATIENCE = 480_000

function counterexample({ violation }: SimulationReport): string {
  if (violation === undefined) return ''
  return [`seed ${violation.seed}, path ${violation.path}`, ...violation.commands, violation.message].join('\n')
}

for (const name of STORES) {
  test(`${name}: ${HISTORIES[name]} histories keep every rule`, { timeout: PATIENCE }, async () => {
    // Two at a time: one continues while the other waits for its disk.
    const halves = [SEED, SEED + 1].map((seed) => simulate({ open: opener(name), runs: HISTORIES[name] / 2, seed }))
    const reports = await Promise.all(halves)
    expect(reports.map(counterexample)).toEqual(['', ''])
    for (const state of EXPLAINED) {
      const times = reports.reduce((sum, { reached }) => sum + (reached.get(`explained ${state}`) ?? 0), 0)
      expect(times, state).toBeGreaterThan(HISTORIES[name] / 100)
    }
  })

  test(`${name}: ${LIMIT_HISTORIES[name]} histories keep every limit`, { timeout: PATIENCE }, async () => {
    expect(counterexample(await simulateLimits({ open: opener(name), runs: LIMIT_HISTORIES[name], seed: SEED }))).toBe(
      '',
    )
  })
}

test('the same seed gives the same history', { timeout: PATIENCE }, async () => {
  const first = await simulate({ open: opener('memory'), runs: 200, seed: SEED })
  const second = await simulate({ open: opener('memory'), runs: 200, seed: SEED })
  expect(second.trace).toBe(first.trace)
})

for (const limit of LIMITS.filter(({ per, burst }) => per === 1000 && burst === 0)) {
  test(`memory: ${limit.name} under permanent load is used by at least 85 %`, { timeout: PATIENCE }, async () => {
    // The same number of calls for each, because the result is a share.
    expect(await saturated(opener('memory'), limit, Math.ceil(300 / limit.rate))).toBeGreaterThan(0.85)
  })
}
