// `IdleTracker` detects when nothing more happens without a clock advance: no watched call is pending and the event loop is idle.
import type { Millis } from '../clock.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** Chained promises need a few turns of the event loop but no time. */
const IDLE_TURNS = 8

export class IdleTracker {
  readonly #clock: VirtualClock
  /** The number of pending calls of `settled`. */
  #waiting = 0

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  async settled(): Promise<void> {
    this.#waiting++
    await this.#settle()
    this.#waiting--
  }

  async #settle(): Promise<void> {
    for (let still = 0; still < IDLE_TURNS;) {
      const before = this.#clock.calls
      // A wait for I/O must not spin: the server that does the work may need the same core.
      if (before.pending > 0) await this.#clock.nextSettled
      await new Promise((resolve) => setImmediate(resolve))
      const { pending, settled } = this.#clock.calls
      still = pending === 0 && settled === before.settled ? still + 1 : 0
    }
  }

  /** Advances the clock from timer to timer and completes all consequences of one before the next. */
  async advance(by: Millis): Promise<void> {
    const clock = this.#clock
    const end = clock.monotonic() + by
    await this.#advanceWhile((next) => next <= end)
    clock.advance(end - clock.monotonic())
    await this.#settle()
  }

  /** Advances the clock until the promise settles. */
  async advanceUntil<T>(work: Promise<T>): Promise<T> {
    const end = new AbortController()
    const over = work.finally(() => end.abort())
    // The error is thrown below, after the clock has advanced.
    over.catch(() => {})
    // Without a timer, the promise waits for real I/O.
    while (!end.signal.aborted) await this.#advanceWhile(() => !end.signal.aborted)
    return over
  }

  async #advanceWhile(goesOn: (next: Millis) => boolean): Promise<void> {
    const clock = this.#clock
    await this.#allSettled()
    for (let next = clock.next(); next !== undefined && goesOn(next); next = clock.next()) {
      clock.advance(Math.max(0, next - clock.monotonic()))
      await this.#allSettled()
    }
  }

  /** A script that is under way may wait for idleness as well, e.g. in `crash`. Time that went on would keep it waiting. */
  async #allSettled(): Promise<void> {
    do await this.#settle()
    while (this.#waiting > 0)
  }
}
