// The conformance suite defines the store contract: a store is correct exactly when the suite passes. Each rule L and M of the
// design that a store decides has tests named after it. Each file is one guarantee, so a failing name says which promise is broken.
import assert from 'node:assert/strict'
import type { Harness, Runner } from './harness.ts'
import { ConformanceStage, type Rule, type Suite } from './stage.ts'
import { atomicItems } from './atomic-items.ts'
import { batches } from './batches.ts'
import { bigLanes } from './big-lanes.ts'
import { bulkhead } from './bulkhead.ts'
import { cancel } from './cancel.ts'
import { crash } from './crash.ts'
import { deadLetters } from './dead-letters.ts'
import { deadLetterEvents } from './dead-letter-events.ts'
import { docs } from './docs.ts'
import { duplicates } from './duplicates.ts'
import { durability, inMemory } from './durability.ts'
import { duringRun } from './during-run.ts'
import { failure } from './failure.ts'
import { stats } from './stats.ts'
import { holds } from './holds.ts'
import { laneKeys } from './keys.ts'
import { leading } from './leading.ts'
import { limitCosts } from './limit-costs.ts'
import { limits } from './limits.ts'
import { manyLanes } from './many-lanes.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { order } from './order.ts'
import { passedDeadlines } from './passed-deadlines.ts'
import { pauses } from './pauses.ts'
import { payloads } from './payloads.ts'
import { placedEvents } from './placed-events.ts'
import { permits } from './permits.ts'
import { pressure } from './pressure.ts'
import { publishedEvents } from './published.ts'
import { purge } from './purge.ts'
import { purgedRuns } from './purged-runs.ts'
import { purgedTexts } from './purged-texts.ts'
import { races } from './races.ts'
import { records } from './records.ts'
import { release } from './release.ts'
import { repeatableCalls } from './repeatable-calls.ts'
import { replay } from './replay.ts'
import { retentionScans } from './retention-scans.ts'
import { retention } from './retention.ts'
import { routes } from './routes.ts'
import { shares } from './shares.ts'
import { skips } from './skips.ts'
import { steering } from './steering.ts'
import { storedWhole } from './stored-whole.ts'
import { time } from './time.ts'
import { windows } from './windows.ts'

export type { Harness, Runner } from './harness.ts'

const suites: Readonly<Record<string, Suite>> = {
  'one at a time': oneAtATime,
  'stored whole': storedWhole,
  published: publishedEvents,
  routes,
  duplicates,
  keys: laneKeys,
  skips,
  windows,
  leading,
  'passed deadlines': passedDeadlines,
  order,
  shares,
  'many lanes': manyLanes,
  'during a run': duringRun,
  cancel,
  batches,
  'big lanes': bigLanes,
  failure,
  'dead letters': deadLetters,
  'dead letter events': deadLetterEvents,
  crash,
  release,
  holds,
  steering,
  purge,
  'purged runs': purgedRuns,
  'purged texts': purgedTexts,
  replay,
  permits,
  time,
  pressure,
  retention,
  'retention, looks': retentionScans,
  bulkhead,
  limits,
  'limit costs': limitCosts,
  pauses,
  payloads: payloads,
  records,
  placedEvents,
  docs,
  figures: stats,
  'atomic items': atomicItems,
  'repeatable calls': repeatableCalls,
  races,
  durability,
}

export function storeConformance(runner: Runner, harness: Harness): void {
  const rule: Rule = (name, test) => {
    runner.it(name, async () => {
      const stage = await ConformanceStage.open(harness)
      try {
        await test(stage)
      } finally {
        await stage.close()
      }
    })
  }
  for (const name of harness.only ?? []) assert.ok(name in suites, `there is no suite ${name}`)
  runner.describe(`store: ${harness.name}`, () => {
    for (const [name, suite] of Object.entries(suites)) {
      if (harness.only?.includes(name) === false) continue
      const isDurable = name !== 'durability' || harness.reopen !== undefined
      runner.describe(name, () => (isDurable ? suite : inMemory)(rule))
    }
  })
}
