// The store's clock, as far as it is known here (L21). Each answer says what time it was there, at a moment between the question
// and the answer: so the store's clock is known to be within that. What is taken for it stays as it is as long as it can be so,
// which is never ahead of it, and behind by no more than its quickest answer took.
// With each word comes the epoch of the routes, which says whether what was read before still holds.
import type { Clock, Millis } from '../clock.ts'
import type { Reply } from '../store/contract/index.ts'

/** More than an answer that was long on its way, or a loop that stood still, can explain. */
const A_STEP: Millis = 10_000

export class StoreTime {
  readonly #clock: Clock
  readonly #stepped: (by: Millis) => void
  /** How far the store is ahead of the monotonic clock; undefined before anything was heard. */
  #ahead: Millis | undefined
  #routes = 0

  /** `stepped`: the store's clock is not where it should be by now. */
  constructor(clock: Clock, stepped: (by: Millis) => void) {
    this.#clock = clock
    this.#stepped = stepped
  }

  /** To be called before the store is asked; what it gives, with the answer. */
  asking(): (reply: Reply) => void {
    const asked = this.#clock.monotonic()
    return (reply) => this.hear(reply, asked)
  }

  /** `asked`: when, on the monotonic clock. */
  hear(reply: Reply, asked: Millis): void {
    this.#routes = Math.max(this.#routes, reply.routes)
    const [least, most] = [reply.now - this.#clock.monotonic(), reply.now - asked]
    const before = this.#ahead ?? least
    this.#ahead = Math.min(Math.max(before, least), most)
    const by = least - before
    if (Math.abs(by) > A_STEP) this.#stepped(by)
  }

  /** The newest that was heard of. */
  get routes(): number {
    return this.#routes
  }

  now(): Millis {
    return this.#ahead === undefined ? this.#clock.now() : Math.floor(this.#ahead + this.#clock.monotonic())
  }
}
