// `Sleepers` holds the calls that wait for the time of their slot. A changed limit and the end of the app wake them early.
import type { Clock, Millis } from '../clock.ts'

interface SleepHandle {
  /** Resolves when the wait is over, however it ended. */
  readonly done: Promise<void>
  readonly wake: () => void
}

interface Sleeper {
  readonly limits: readonly string[]
  readonly wake: () => void
}

export class Sleepers {
  readonly #clock: Clock
  readonly #sleeping = new Set<Sleeper>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `sleep` waits until the delay is over, the signal aborts, or any of the limits changes. */
  sleep(delay: Millis, signal: AbortSignal | undefined, limits: readonly string[]): SleepHandle {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const wake = (): void => {
      cancel()
      signal?.removeEventListener('abort', wake)
      this.#sleeping.delete(sleeper)
      resolve()
    }
    const sleeper = { limits, wake }
    const cancel = this.#clock.after(Math.max(0, delay), wake)
    signal?.addEventListener('abort', wake, { once: true })
    this.#sleeping.add(sleeper)
    return { done: over, wake }
  }

  wakeLimit(limit: string): void {
    for (const { limits, wake } of this.#sleeping) if (limits.includes(limit)) wake()
  }

  wakeAll(): void {
    for (const { wake } of this.#sleeping) wake()
  }
}
