// How late timers are: what a handler that keeps the event loop busy does to everybody else in its process.
import type { Clock, Millis } from '../clock.ts'

const LOOK_EVERY = 500
/** From here on leases are in danger, and somebody should be named. */
const LAG_TOLD: Millis = 1_000

export class LoopLag {
  readonly #clock: Clock
  readonly #told: (ms: Millis) => void
  #cancel: () => void = () => {}
  #worst: Millis = 0

  constructor(clock: Clock, told: (ms: Millis) => void) {
    this.#clock = clock
    this.#told = told
  }

  start(): void {
    const expected = this.#clock.monotonic() + LOOK_EVERY
    this.#cancel = this.#clock.after(LOOK_EVERY, () => {
      const lag = this.#clock.monotonic() - expected
      this.#worst = Math.max(this.#worst, lag)
      if (lag >= LAG_TOLD) this.#told(lag)
      this.start()
    })
  }

  stop(): void {
    this.#cancel()
  }

  /** The worst since it was last asked. */
  take(): Millis {
    const worst = this.#worst
    this.#worst = 0
    return worst
  }
}
