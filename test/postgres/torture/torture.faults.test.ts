// Four stores on one schema, eight workers with every ending, publishers, an operator, and terminated backends: in the end,
// each table holds exactly what the ledger of the test says. `SEED=<n>` tries another plan.
import { describe, expect, inject, it } from 'vitest'
import { complaintsOf } from './check.ts'
import { torture, type SoFar } from './cluster.ts'

const SEEDS = process.env['SEED'] === undefined ? [20_261_118, 7] : [Number(process.env['SEED'])]
const PLAN = { batches: 90, acts: 120, terminated: 40, stalls: 4, crashes: 3 }
/** The number of complaints to show: one fault can appear in many rows. */
const SHOWN = 20

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it.each(SEEDS)(
    'eight workers on four stores, seed %i: nothing is lost, done twice, beyond a bound or left behind',
    { timeout: 600_000 },
    async (seed) => {
      const isEnough = (soFar: SoFar): boolean => missing(soFar).length === 0
      const tortured = await torture({ ...PLAN, url, schema: `torture_${process.pid}_${seed}`, seed, isEnough })
      expect(complaintsOf(tortured).slice(0, SHOWN), `seed ${seed}`).toEqual([])
      expect(missing(tortured), `seed ${seed}`).toEqual([])
    },
  )
})

const OUTCOMES = ['done', 'snoozed', 'retry', 'dropped', 'partial', 'dead', 'cancelled'] as const
const KINDS = ['done', 'partial', 'dead', 'dropped', 'cancelled', 'superseded', 'purged'] as const

/** What should have happened at least once and has not: then the test proved less than it claims. */
function missing({ ledger, tables, terminated }: SoFar): readonly string[] {
  const { leases } = ledger
  const happened = new Set<string>([
    ...leases.flatMap(({ outcome, answer }) => (answer === 'ok' ? `settled as ${outcome?.kind}` : [])),
    ...leases.flatMap(({ answer }) => (answer === undefined ? 'a lease that nobody settled' : [])),
    ...tables.runs.map(({ kind }) => `on record as ${kind}`),
    ...(tables.deadLetters.length > 0 ? ['a dead letter'] : []),
    ...(tables.receipts.length > 0 ? ['a receipt'] : []),
    ...(terminated > 0 ? ['a terminated backend'] : []),
  ])
  const wanted = [
    ...OUTCOMES.map((kind) => `settled as ${kind}`),
    ...KINDS.map((kind) => `on record as ${kind}`),
    'a lease that nobody settled',
    'a dead letter',
    'a receipt',
    'a terminated backend',
  ]
  return wanted.filter((what) => !happened.has(what))
}
