// `sluice work --once`: works what is due and ends, for cron and for machines that live only as long as they are asked.
import type { Millis } from '../../clock.ts'
import { mustBeFit } from '../../set-up.ts'
import type { Sluice } from '../../sluice.ts'
import { keepForAnswers } from '../answer-stream.ts'
import { configFile, configured } from '../config-file.ts'
import { misused, type Command, type Scene } from '../command.ts'
import { EXIT } from '../exit.ts'
import { many, plain } from '../output.ts'
import { DELIVERING, forcedBy } from './run-app.ts'

const LOOK_EVERY: Millis = 50
/** What is due and not begun for so long is not for this app: another one serves it, or nobody. */
const GIVEN_UP_AFTER: Millis = 3_000
/** Each ends one that was started. */
const ENDS = [
  'run.done',
  'run.again',
  'run.retry',
  'run.partial',
  'run.cancelled',
  'run.lost',
  'run.dead',
  'run.dropped',
] as const

export const work: Command = {
  words: 'work',
  says: 'work what is due and end, for cron; --once is required',
  options: {
    once: { type: 'boolean', says: 'end when nothing is due and nothing runs' },
    fail: { type: 'boolean', says: 'end with 1 if a run failed, though it may be tried again' },
    ...DELIVERING,
  },
  run: async (scene) => {
    const { given, where, out } = scene
    if (!given.is('once')) return misused(scene, 'work ends when nothing is due: say --once. To go on, sluice start.')
    // What its handlers print is theirs to print, unless a program reads along.
    if (out.asJson) keepForAnswers()
    const { app } = await configured(configFile(where.folder, where.config))
    const tally = new Tally(app)
    let isCutShort = false
    try {
      mustBeFit(app.setUp(), forcedBy(given))
      await app.start()
      const left = await idle(app, tally, scene)
      isCutShort = scene.signal.aborted && left.length > 0
      const why = isCutShort ? 'It was stopped, and these are due' : 'Due, but of no flow that begins here'
      if (left.length > 0) out.note(`${why}: ${plain(left.join(', '))}`)
    } finally {
      await app.stop()
    }
    if (out.asJson) out.answer(tally.counts)
    else out.line(`${many(tally.counts.runs, 'run')}, of which ${tally.counts.failed} failed.`)
    return isCutShort || (given.is('fail') && tally.counts.failed > 0) ? EXIT.failed : EXIT.done
  },
}

/** What this process has begun and ended. Runs that were put off had not begun. */
class Tally {
  readonly #live = new Set<string>()
  #changes = 0
  #runs = 0
  #failed = 0

  constructor(app: Sluice) {
    app.events.on('run.started', ({ run }) => {
      this.#live.add(run)
      this.#changes++
    })
    for (const name of ENDS) {
      app.events.on(name, ({ run }) => {
        if (!this.#live.delete(run)) return
        this.#changes++
        this.#runs++
        if (name === 'run.retry' || name === 'run.dead') this.#failed++
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

/** Answers the flows that are due and that nobody here begins; all that are due, if it is to stop. */
async function idle(app: Sluice, tally: Tally, { clock, signal }: Scene): Promise<readonly string[]> {
  let seen = -1
  let still = clock.monotonic()
  while (!signal.aborted) {
    const before = tally.changes
    const due = await dueFlows(app, clock.now())
    // What ended while the store was asked may have published something that is due.
    const isSure = tally.changes === before
    if (isSure && tally.live === 0 && due.length === 0) return []
    if (tally.changes !== seen || tally.live > 0) still = clock.monotonic()
    seen = tally.changes
    if (clock.monotonic() - still > GIVEN_UP_AFTER) return due
    await new Promise<void>((resolve) => clock.after(LOOK_EVERY, resolve))
  }
  return dueFlows(app, clock.now())
}

async function dueFlows(app: Sluice, now: Millis): Promise<readonly string[]> {
  const flows = await app.flows.list()
  return flows
    .filter(({ due, paused }) => due !== undefined && due <= now && paused === undefined)
    .map(({ flow }) => flow)
}
