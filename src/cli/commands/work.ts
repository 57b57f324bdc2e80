// `sluice work --once` processes what is due and exits, for cron and for machines that run only on demand.
import type { Millis } from '../../clock.ts'
import { assertProductionReady } from '../../app/production-checks.ts'
import type { Sluice } from '../../app/sluice.ts'
import { RUN_ENDINGS } from '../../observe/emitter.ts'
import { findConfigPath, loadConfig } from '../config-file.ts'
import { reportMisuse, type Command, type CommandContext } from '../command.ts'
import { EXIT } from '../exit.ts'
import { redirectStdout, formatCount, escapeText } from '../output.ts'
import { DELIVERY_OPTIONS, parseOverrides } from './run-app.ts'

const POLL_EVERY: Millis = 50
/** Work that is due but not started for this long belongs to another app, or to no app. */
const IDLE_TIMEOUT: Millis = 3_000

export const work: Command = {
  name: 'work',
  description: 'process what is due and exit, for cron; --once is required',
  options: {
    once: { type: 'boolean', description: 'exit when nothing is due and nothing runs' },
    fail: { type: 'boolean', description: 'exit with 1 if a run failed, even if it will be retried' },
    ...DELIVERY_OPTIONS,
  },
  run: async (context) => {
    const { args, target, output } = context
    if (!args.has('once'))
      return reportMisuse(
        context,
        'work needs --once: it exits when nothing is due. To keep running, use sluice start.',
      )
    // Handlers may print to standard output, unless a program reads the JSON result.
    if (output.asJson) redirectStdout()
    const { app } = await loadConfig(findConfigPath(target.folder, target.config))
    const counter = new RunCounter(app)
    let isCutShort = false
    try {
      assertProductionReady(app.productionSetup(), parseOverrides(args))
      await app.start()
      const left = await waitUntilIdle(app, counter, context)
      isCutShort = context.signal.aborted && left.length > 0
      const why = isCutShort ? 'Stopped while these are due' : 'Due, but no flow here starts it'
      if (left.length > 0) output.note(`${why}: ${escapeText(left.join(', '))}`)
    } finally {
      await app.stop()
    }
    if (output.asJson) output.printJson(counter.counts)
    else output.print(`${formatCount(counter.counts.runs, 'run')}, of which ${counter.counts.failed} failed.`)
    return isCutShort || (args.has('fail') && counter.counts.failed > 0) ? EXIT.failed : EXIT.done
  },
}

/** `RunCounter` counts the runs that this process started and ended. Deferred runs never started. */
class RunCounter {
  readonly #live = new Set<string>()
  #changes = 0
  #runs = 0
  #failed = 0

  constructor(app: Sluice) {
    app.on('run.started', ({ run }) => {
      this.#live.add(run)
      this.#changes++
    })
    for (const ending of RUN_ENDINGS) {
      app.on(`run.${ending}`, ({ run }) => {
        if (!this.#live.delete(run)) return
        this.#changes++
        this.#runs++
        if (ending === 'retry' || ending === 'dead') this.#failed++
      })
    }
  }

  get live(): number {
    return this.#live.size
  }

  get changes(): number {
    return this.#changes
  }

  get counts(): { readonly runs: number; readonly failed: number } {
    return { runs: this.#runs, failed: this.#failed }
  }
}

/** Returns the flows that are due but that nothing starts here, or all due flows when it must stop. */
async function waitUntilIdle(
  app: Sluice,
  counter: RunCounter,
  { clock, signal }: CommandContext,
): Promise<readonly string[]> {
  let seen = -1
  let still = clock.monotonic()
  while (!signal.aborted) {
    const before = counter.changes
    const due = await dueFlows(app, clock.now())
    // A run that ended during the store call may have published an event that is due.
    const isSure = counter.changes === before
    if (isSure && counter.live === 0 && due.length === 0) return []
    if (counter.changes !== seen || counter.live > 0) still = clock.monotonic()
    seen = counter.changes
    if (clock.monotonic() - still > IDLE_TIMEOUT) return due
    await new Promise<void>((resolve) => clock.after(POLL_EVERY, resolve))
  }
  return dueFlows(app, clock.now())
}

async function dueFlows(app: Sluice, now: Millis): Promise<readonly string[]> {
  const flows = await app.admin.flows.list()
  return flows
    .filter(({ due, paused }) => due !== undefined && due <= now && paused === undefined)
    .map(({ flow }) => flow)
}
