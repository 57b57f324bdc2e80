// Knows when nothing more happens without time passing: no call to the store is open, and the event loop has nothing to do.
import type { Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** Promises that follow from promises need a few turns of the event loop, not time. */
const TURNS = 8

export class Quiet {
  #open = 0
  #done = 0

  /** The same store, whose calls are counted. */
  watched(store: Store): Store {
    return new Proxy(store, {
      get: (target, name): unknown => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        return (...args: unknown[]): unknown => this.#counted(Reflect.apply(member, target, args))
      },
    })
  }

  async settled(): Promise<void> {
    for (let still = 0; still < TURNS;) {
      const before = this.#done
      await new Promise((resolve) => setImmediate(resolve))
      still = this.#open === 0 && this.#done === before ? still + 1 : 0
    }
  }

  /** Time passes from deadline to deadline, and all that follows from one happens before the next. */
  async pass(clock: VirtualClock, by: Millis): Promise<void> {
    const end = clock.monotonic() + by
    await this.#through(clock, (next) => next <= end)
    clock.advance(end - clock.monotonic())
    await this.settled()
  }

  /** As much time passes as it takes. */
  async awaited<T>(clock: VirtualClock, what: Promise<T>): Promise<T> {
    let isOver = false
    const over = what.finally(() => (isOver = true))
    // Heard of below, when time has passed.
    over.catch(() => {})
    await this.#through(clock, () => !isOver)
    return over
  }

  async #through(clock: VirtualClock, goesOn: (next: Millis) => boolean): Promise<void> {
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
