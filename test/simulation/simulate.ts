// Runs random histories against a store, and shrinks the first one that violates a rule to the few steps that matter.
import { performance } from 'node:perf_hooks'
import fc from 'fast-check'
import type { Store } from '../../src/store/contract/index.ts'
import { histories, type History } from './commands.ts'
import { drain } from './drain.ts'
import { checkExplained } from './explained.ts'
import { FLOWS, START } from './settings.ts'
import { expand } from './rows.ts'
import { issue } from './steps/index.ts'
import { VirtualClock } from './virtual-clock.ts'
import { Violation } from './violation.ts'
import { World } from './world.ts'

export interface Opened {
  readonly store: Store
  readonly reopen?: () => Promise<Store>
  /** Called after the history: removes what the store left behind. */
  readonly dispose?: () => Promise<void>
}

export interface Simulation {
  readonly open: (clock: VirtualClock) => Promise<Opened>
  readonly runs: number
  readonly seed: number
  /** The maximum number of commands of a history. */
  readonly steps?: number
  /** The path of a violation: runs only this one history. */
  readonly path?: string
  /** False returns the first violation without shrinking it, which is faster. */
  readonly shrink?: boolean
}

export interface SimulationReport {
  readonly violation?: {
    readonly seed: number
    readonly path: string
    readonly commands: readonly string[]
    readonly message: string
    readonly shrinks: number
  }
  readonly runs: number
  readonly ms: number
  /** How often each kind of case was reached. */
  readonly reached: ReadonlyMap<string, number>
  /** The same for the same seed, for any run ids that the store draws. */
  readonly trace: string
}

interface Played {
  readonly log: readonly string[]
  readonly failure: Error | undefined
  readonly trace: string
  readonly reached: ReadonlyMap<string, number>
}

const EXPLAINED_EVERY = 3

/** Runs one history; a violation is part of the result. */
async function play(open: Simulation['open'], history: History): Promise<Played> {
  const clock = new VirtualClock(START)
  const opened = await open(clock)
  const world = new World({ store: opened.store, reopen: opened.reopen, clock }, history.setup)
  const { log } = world
  log.push(`flows ${world.flows.map((flow) => flow.name).join(', ')}; ${world.keys} keys`)
  let failure: Error | undefined
  let steps = 0
  // In half of the histories, because reading makes a store write what it had deferred.
  const isLookedAt = history.commands.length % 2 === 0
  try {
    world.model.routes = (await world.store.stats()).routes
    for (const command of history.commands.flatMap(expand)) {
      const issued = await issue(world, command)
      if (issued === undefined) continue
      log.push(issued.label)
      await issued.check(await issued.send())
      if (isLookedAt && ++steps % EXPLAINED_EVERY === 0) await checkExplained(world, steps)
    }
    log.push('the faults stop')
    await drain(world)
  } catch (error) {
    failure = error instanceof Error ? error : new Violation(String(error))
  } finally {
    await world.store.close()
    await opened.dispose?.()
  }
  return { log, failure, trace: world.trace(), reached: world.reached }
}

export async function simulate(simulation: Simulation): Promise<SimulationReport> {
  const { open, runs, seed, steps = 45, path, shrink = true } = simulation
  const started = performance.now()
  const reached = new Map<string, number>()
  let last: Played | undefined
  let traces = ''
  let played = 0
  const property = fc.asyncProperty(
    histories(
      steps,
      FLOWS.map((flow) => flow.name),
    ),
    async (history) => {
      const result = await play(open, history)
      played += 1
      if (result.failure === undefined) {
        for (const [what, n] of result.reached) reached.set(what, (reached.get(what) ?? 0) + n)
        traces = `${traces}${result.trace}`.slice(-4096)
        return
      }
      last = result
      throw result.failure
    },
  )
  const details = await fc.check(property, {
    numRuns: runs,
    seed,
    endOnFailure: !shrink,
    ...(path === undefined ? {} : { path }),
  })
  const report = { runs: played, ms: Math.round(performance.now() - started), reached, trace: traces.slice(-40) }
  if (!details.failed || last === undefined) return report
  const commands = details.counterexample === null ? last.log : (await play(open, details.counterexample[0])).log
  const message = details.errorInstance instanceof Error ? details.errorInstance.message : 'unknown'
  const violation = { seed, path: details.counterexamplePath ?? '', commands, message, shrinks: details.numShrinks }
  return { ...report, violation }
}
