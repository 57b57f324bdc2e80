// `IdleTracker` detects when nothing more happens without a clock advance: no store call is pending and the event loop is idle.
import type { Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** Chained promises need a few turns of the event loop but no time. */
const IDLE_TURNS = 8

export class IdleTracker {
  #open = 0
  #done = 0

  /** Wraps the store so that pending calls are counted. */
  watchStore(store: Store): Store {
    return new Proxy(store, {
      get: (target, name): unknown => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        return (...args: unknown[]): unknown => this.#counted(Reflect.apply(member, target, args))
      },
    })
  }

  async settled(): Promise<void> {
    for (let still = 0; still < IDLE_TURNS;) {
      const before = this.#done
      await new Promise((resolve) => setImmediate(resolve))
      still = this.#open === 0 && this.#done === before ? still + 1 : 0
    }
  }

  /** Advances the clock from timer to timer and completes all consequences of one before the next. */
  async advance(clock: VirtualClock, by: Millis): Promise<void> {
    const end = clock.monotonic() + by
    await this.#advanceWhile(clock, (next) => next <= end)
    clock.advance(end - clock.monotonic())
    await this.settled()
  }

  /** Advances the clock until the promise settles. */
  async advanceUntil<T>(clock: VirtualClock, what: Promise<T>): Promise<T> {
    let isOver = false
    const over = what.finally(() => (isOver = true))
    // The error is thrown below, after the clock has advanced.
    over.catch(() => {})
    await this.#advanceWhile(clock, () => !isOver)
    return over
  }

  async #advanceWhile(clock: VirtualClock, goesOn: (next: Millis) => boolean): Promise<void> {
    await this.settled()
    for (let next = clock.next(); next !== undefined && goesOn(next); next = clock.next()) {
      clock.advance(Math.max(0, next - clock.monotonic()))
      await this.settled()
    }
  }

  #counted(result: unknown): unknown {
    if (!(result instanceof Promise)) return result
    this.#open++
    return result.finally(() => {
      this.#open--
      this.#done++
    })
  }
}
