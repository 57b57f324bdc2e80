// Chores of one shape: each has a name, says how soon it wants to be done again, and harms nothing when it fails.
import { within, type Clock, type Millis } from '../clock.ts'

export interface Chore {
  readonly name: string
  /** Rules depend on its being done within a second, also under a clock of a test's own. */
  readonly prompt?: boolean
  /** Does a bounded piece; answers after how long it wants to be called again. */
  readonly work: () => Promise<Millis>
}

const AFTER_FAILURE = 5_000

export class Upkeep {
  readonly #clock: Clock
  readonly #chores: readonly Chore[]
  readonly #told: (chore: string, failure: string | undefined) => void
  readonly #failing = new Set<string>()
  readonly #timers = new Map<string, () => void>()
  readonly #busy = new Set<Promise<void>>()
  #stopped = false

  /** `told`: a chore began to fail, and says why, or no longer does. */
  constructor(clock: Clock, chores: readonly Chore[], told: (chore: string, failure: string | undefined) => void) {
    this.#clock = clock
    this.#chores = chores
    this.#told = told
  }

  start(): void {
    for (const chore of this.#chores) this.#do(chore)
  }

  /** There is something to do for this one now. */
  soon(name: string): void {
    const chore = this.#chores.find((one) => one.name === name)
    const timer = this.#timers.get(name)
    if (chore === undefined || timer === undefined || this.#stopped) return
    timer()
    this.#timers.delete(name)
    this.#do(chore)
  }

  /** Waits for what is being done, but not for ever: a store may never answer. */
  async stop(most: Millis): Promise<void> {
    this.#stopped = true
    for (const cancel of this.#timers.values()) cancel()
    if (this.#busy.size === 0) return
    await within(this.#clock, Promise.all(this.#busy), most)
  }

  #do(chore: Chore): void {
    const doing = this.#once(chore)
    this.#busy.add(doing)
    void doing.then(() => this.#busy.delete(doing))
  }

  async #once(chore: Chore): Promise<void> {
    let after = AFTER_FAILURE
    try {
      after = await chore.work()
      if (this.#failing.delete(chore.name)) this.#told(chore.name, undefined)
    } catch (error) {
      if (!this.#failing.has(chore.name)) this.#told(chore.name, error instanceof Error ? error.message : 'It failed.')
      this.#failing.add(chore.name)
    }
    if (this.#stopped) return
    const timer = this.#clock.after(after, () => {
      this.#timers.delete(chore.name)
      this.#do(chore)
    })
    this.#timers.set(chore.name, timer)
  }
}

/** As rarely as this, unless a rule depends on it: under a test's clock nothing else happens meanwhile. */
export function calmed(chore: Chore, calm: Millis | undefined): Chore {
  if (calm === undefined || chore.prompt === true) return chore
  // One that has more to do just now is not at its end.
  const rarely = (after: Millis): Millis => (after === 0 ? 0 : Math.max(calm, after))
  return { name: chore.name, work: async () => rarely(await chore.work()) }
}
