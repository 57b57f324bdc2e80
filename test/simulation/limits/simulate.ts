// Runs random histories of calls under limits against a store, and checks the rate in every window and the order of the callers.
import { performance } from 'node:perf_hooks'
import fc from 'fast-check'
import { START } from '../settings.ts'
import type { Simulation, SimulationReport } from '../simulate.ts'
import { demand, Violation } from '../violation.ts'
import { VirtualClock } from '../virtual-clock.ts'
import { limitHistories, LIMITS, type LimitCommand, type NamedLimit } from './commands.ts'
import { LimitWorld } from './world.ts'

const STEPS_TO_SERVE_ALL = 400

interface Played {
  readonly log: readonly string[]
  readonly failure: Error | undefined
  readonly reached: ReadonlyMap<string, number>
}

async function playLimits(open: Simulation['open'], commands: readonly LimitCommand[]): Promise<Played> {
  const clock = new VirtualClock(START)
  const opened = await open(clock)
  const world = new LimitWorld(opened.store, clock)
  let failure: Error | undefined
  try {
    for (const command of commands) await world.step(command)
    // From here on, everybody who still waits comes on time and is served.
    for (let steps = 0; world.waiting().length > 0; steps++) {
      demand(steps < STEPS_TO_SERVE_ALL, `${world.waiting().length} callers are never served`)
      await world.serveNext()
    }
  } catch (error) {
    failure = error instanceof Error ? error : new Violation(String(error))
  } finally {
    await opened.store.close()
    await opened.dispose?.()
  }
  return { log: world.log, failure, reached: world.reached }
}

export async function simulateLimits(simulation: Simulation): Promise<SimulationReport> {
  const { open, runs, seed, steps = 40, path, shrink = true } = simulation
  const started = performance.now()
  const reached = new Map<string, number>()
  let played = 0
  const property = fc.asyncProperty(limitHistories(steps), async (commands) => {
    const result = await playLimits(open, commands)
    played += 1
    for (const [what, n] of result.reached) reached.set(what, (reached.get(what) ?? 0) + n)
    if (result.failure !== undefined) throw result.failure
  })
  const details = await fc.check(property, {
    numRuns: runs,
    seed,
    endOnFailure: !shrink,
    ...(path === undefined ? {} : { path }),
  })
  const report = { runs: played, ms: Math.round(performance.now() - started), reached, trace: '' }
  if (!details.failed || details.counterexample === null) return report
  const { log, failure } = await playLimits(open, details.counterexample[0])
  const message = failure?.message ?? String(details.errorInstance)
  const found = { seed, path: details.counterexamplePath ?? '', commands: log, message, shrinks: details.numShrinks }
  return { ...report, violation: found }
}

/** The share of the rate that permanently busy callers get: the cost of exactness (M1). */
export async function saturated(open: Simulation['open'], limit: NamedLimit, seconds: number): Promise<number> {
  const clock = new VirtualClock(START)
  const opened = await open(clock)
  const world = new LimitWorld(opened.store, clock)
  const index = LIMITS.indexOf(limit)
  try {
    while (clock.now() < START + seconds * 1000) {
      const missing = limit.rate + 5 - world.waiting().length
      if (missing > 0) await world.step({ kind: 'ask', limits: index, cost: 1, callers: missing })
      await world.serveNext()
    }
  } finally {
    await opened.store.close()
    await opened.dispose?.()
  }
  const used = world.uses.get(limit)?.length ?? 0
  return used / ((limit.rate * seconds * 1000) / limit.per)
}
