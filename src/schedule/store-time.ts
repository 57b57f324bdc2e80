// The store's clock, as far as it is known here: its last word, and the time that has passed since. Only it is compared (L21).
// With each word comes the epoch of the routes, which says whether what was read before still holds.
import type { Clock, Millis } from '../clock.ts'
import type { Reply } from '../store/contract/index.ts'

/** More than an answer that was long on its way, or a loop that stood still, can explain. */
const A_STEP: Millis = 10_000

export class StoreTime {
  readonly #clock: Clock
  readonly #stepped: (by: Millis) => void
  #said: Millis = 0
  #heard: Millis | undefined
  #routes = 0

  /** `stepped`: the store's clock is not where it should be by now. */
  constructor(clock: Clock, stepped: (by: Millis) => void) {
    this.#clock = clock
    this.#stepped = stepped
  }

  hear(reply: Reply): void {
    this.#routes = Math.max(this.#routes, reply.routes)
    const by = this.#heard === undefined ? 0 : reply.now - this.now()
    this.#said = reply.now
    this.#heard = this.#clock.monotonic()
    if (Math.abs(by) > A_STEP) this.#stepped(by)
  }

  /** The newest that was heard of. */
  get routes(): number {
    return this.#routes
  }

  now(): Millis {
    const passed = this.#heard === undefined ? undefined : this.#clock.monotonic() - this.#heard
    return passed === undefined ? this.#clock.now() : Math.floor(this.#said + passed)
  }
}
