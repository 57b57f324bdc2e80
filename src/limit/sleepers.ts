// Who waits for a slot sleeps until its time comes, unless there is news: the limit has changed, or the app ends.
import type { Clock, Millis } from '../clock.ts'

interface Sleep {
  /** Resolves when it is over, however that came. */
  readonly over: Promise<void>
  readonly wake: () => void
}

interface Sleeper {
  readonly limits: readonly string[]
  readonly wake: () => void
}

export class Sleepers {
  readonly #clock: Clock
  readonly #asleep = new Set<Sleeper>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Until then, or until the signal is aborted, or until there is news of one of these limits. */
  sleep(delay: Millis, signal: AbortSignal | undefined, limits: readonly string[]): Sleep {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const wake = (): void => {
      cancel()
      signal?.removeEventListener('abort', wake)
      this.#asleep.delete(sleeper)
      resolve()
    }
    const sleeper = { limits, wake }
    const cancel = this.#clock.after(Math.max(0, delay), wake)
    signal?.addEventListener('abort', wake, { once: true })
    this.#asleep.add(sleeper)
    return { over, wake }
  }

  news(limit: string): void {
    for (const { limits, wake } of this.#asleep) if (limits.includes(limit)) wake()
  }

  wakeAll(): void {
    for (const { wake } of this.#asleep) wake()
  }
}
