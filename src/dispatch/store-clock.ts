// `StoreClock` estimates the store's clock (L21). Each reply contains the store's time at some instant between call and reply, which
// bounds the offset. The estimate changes only when it leaves these bounds: it is never ahead of the store, and behind by at most the
// duration of the fastest call. Each reply also contains the epoch of the routes, which shows whether cached routes are still valid.
import type { Clock, Millis } from '../clock.ts'
import type { Reply } from '../store/contract/index.ts'

/** A larger jump than a slow reply or a blocked event loop can explain. */
const STEP_THRESHOLD: Millis = 10_000

export class StoreClock {
  readonly #clock: Clock
  readonly #onStep: (by: Millis) => void
  /** How far the store is ahead of the monotonic clock; undefined before the first reply. */
  #offset: Millis | undefined
  #routesEpoch = 0

  /** `onStep` is called when the store's clock jumps. */
  constructor(clock: Clock, onStep: (by: Millis) => void) {
    this.#clock = clock
    this.#onStep = onStep
  }

  /** `startCall` is called before a call to the store. It returns a function that takes the reply. */
  startCall(): (reply: Reply) => void {
    const sentAt = this.#clock.monotonic()
    return (reply) => this.update(reply, sentAt)
  }

  /** `update` takes a reply. `sentAt` is when the call was sent, on the monotonic clock. */
  update(reply: Reply, sentAt: Millis): void {
    this.#routesEpoch = Math.max(this.#routesEpoch, reply.routes)
    const [least, most] = [reply.now - this.#clock.monotonic(), reply.now - sentAt]
    const before = this.#offset ?? least
    this.#offset = Math.min(Math.max(before, least), most)
    const by = least - before
    if (Math.abs(by) > STEP_THRESHOLD) this.#onStep(by)
  }

  /** The newest epoch of the routes in any reply. */
  get routesEpoch(): number {
    return this.#routesEpoch
  }

  now(): Millis {
    return this.#offset === undefined ? this.#clock.now() : Math.floor(this.#offset + this.#clock.monotonic())
  }
}
