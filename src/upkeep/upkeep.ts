// Chores of one shape: each has a name, says how soon it wants to be done again, and harms nothing when it fails.
import type { Clock, Millis } from '../clock.ts'

export interface Chore {
  readonly name: string
  /** Does a bounded piece; answers after how long it wants to be called again. */
  readonly work: () => Promise<Millis>
}

const AFTER_FAILURE = 5_000

export class Upkeep {
  readonly #clock: Clock
  readonly #chores: readonly Chore[]
  readonly #failed: (chore: string, error: unknown) => void
  readonly #timers = new Map<string, () => void>()
  readonly #busy = new Set<Promise<void>>()
  #stopped = false

  constructor(clock: Clock, chores: readonly Chore[], failed: (chore: string, error: unknown) => void) {
    this.#clock = clock
    this.#chores = chores
    this.#failed = failed
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

  /** Waits for what is being done. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const cancel of this.#timers.values()) cancel()
    await Promise.all(this.#busy)
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
    } catch (error) {
      this.#failed(chore.name, error)
    }
    if (this.#stopped) return
    const timer = this.#clock.after(after, () => {
      this.#timers.delete(chore.name)
      this.#do(chore)
    })
    this.#timers.set(chore.name, timer)
  }
}
