// Knows when nothing more happens without time passing: no call to the store is open, and the event loop has nothing to do.
import type { Store } from '../store/contract/index.ts'

/** Promises that follow from promises need a few turns of the event loop, not time. */
const TURNS = 4

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

  #counted(result: unknown): unknown {
    if (!(result instanceof Promise)) return result
    this.#open++
    return result.finally(() => {
      this.#open--
      this.#done++
    })
  }
}
