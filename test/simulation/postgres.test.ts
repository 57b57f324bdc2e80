// Random histories on PostgreSQL, judged by the reference model and the ledger, as on the other stores. A failure prints
// the seed and the path. The model predicts each reply, so calls run one after the other; test/postgres tests concurrent calls
// with many processes.
import { expect, inject, test } from 'vitest'
import { DIRECT_CALLS_MODES } from '../postgres/direct-calls.ts'
import { opener } from './postgres-opener.ts'
import { simulateLimits } from './limits/simulate.ts'
import { simulate, type SimulationReport } from './simulate.ts'

const HISTORIES = Number(process.env['HISTORIES'] ?? (process.env['SIMULATION'] === 'long' ? 500 : 100))
const SEED = Number(process.env['SEED'] ?? 20_260_801)
const PATIENCE = 3_600_000

function counterexample({ violation }: SimulationReport): string {
  if (violation === undefined) return ''
  return [`seed ${violation.seed}, path ${violation.path}`, ...violation.commands, violation.message].join('\n')
}

for (const { name, url } of inject('postgresServers').slice(-1)) {
  test.each(DIRECT_CALLS_MODES)(
    `${name}, %s: ${HISTORIES} histories keep every rule`,
    { timeout: PATIENCE },
    async (mode) => {
      // Two at a time, each with schemas of its own: one continues while the other waits for the server.
      const halves = [SEED, SEED + 1].map((seed) =>
        simulate({ open: opener(url, `simulation_${mode}_${seed}`, { mode }), runs: HISTORIES / 2, seed }),
      )
      expect((await Promise.all(halves)).map(counterexample)).toEqual(['', ''])
    },
  )

  test(`${name}: ${HISTORIES / 10} histories keep every limit`, { timeout: PATIENCE }, async () => {
    expect(
      counterexample(await simulateLimits({ open: opener(url, 'limits'), runs: HISTORIES / 10, seed: SEED })),
    ).toBe('')
  })
}
