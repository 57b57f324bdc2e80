// Sleeping until a deadline without missing a hint that came while nobody was asleep.
import type { Clock, Millis, Store } from '../index.ts'
import { FLOW } from './flow.ts'
import { sleep } from './sleep.ts'

export class Ears {
  #heard = false
  #wake: (() => void) | undefined
  readonly close: () => void

  constructor(store: Store) {
    this.close = store.listen((hint) => {
      if (hint.kind !== 'due' || hint.flow !== FLOW) return
      this.#heard = true
      this.#wake?.()
    })
  }

  /** What is asked of the store from now on knows all that was heard so far. */
  forget(): void {
    this.#heard = false
  }

  async rest(clock: Clock, delay: Millis, stop: AbortSignal): Promise<void> {
    if (this.#heard) return
    const woken = new AbortController()
    this.#wake = () => woken.abort()
    await sleep(clock, delay, AbortSignal.any([stop, woken.signal]))
    this.#wake = undefined
  }
}
