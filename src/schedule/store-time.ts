// The store's clock, as far as it is known here: its last word, and the time that has passed since. Only it is compared (L21).
import type { Clock, Millis } from '../clock.ts'
import type { Reply } from '../store/contract/index.ts'

/** More than an answer that was long on its way, or a loop that stood still, can explain. */
const A_STEP: Millis = 10_000

export class StoreTime {
  readonly #clock: Clock
  readonly #stepped: (by: Millis) => void
  #said: Millis = 0
  #heard: Millis | undefined

  /** `stepped`: the store's clock is not where it should be by now. */
  constructor(clock: Clock, stepped: (by: Millis) => void) {
    this.#clock = clock
    this.#stepped = stepped
  }

  hear(reply: Pick<Reply, 'now'>): void {
    const by = this.#heard === undefined ? 0 : reply.now - this.now()
    this.#said = reply.now
    this.#heard = this.#clock.monotonic()
    if (Math.abs(by) > A_STEP) this.#stepped(by)
  }

  now(): Millis {
    const passed = this.#heard === undefined ? undefined : this.#clock.monotonic() - this.#heard
    return passed === undefined ? this.#clock.now() : Math.floor(this.#said + passed)
  }
}
