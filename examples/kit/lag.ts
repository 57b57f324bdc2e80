// `Lag` measures how punctual this process is. A call that arrives while the event loop stands still is seen late, and so seems closer to the
// next one than it was.
import { systemClock, type Millis } from 'sluice'

const EVERY = 10

export class Lag {
  #most: Millis = 0
  #last: Millis = systemClock.monotonic()
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#timer = setInterval(() => this.#look(), EVERY)
  }

  /** How late a timer was at most. */
  get most(): Millis {
    return this.#most
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = systemClock.monotonic()
    this.#most = Math.max(this.#most, now - this.#last - EVERY)
    this.#last = now
  }
}
