// `ServerTime` estimates the clock of the server, so that a decision on cached rows needs no round trip for the time.
import { systemClock, type Clock, type Millis } from '../../clock.ts'

/** A sample is used for one to two intervals. */
const SAMPLE_INTERVAL: Millis = 5_000

export class ServerTime {
  readonly #clock: Clock | undefined
  #offsets: readonly [current: number, before: number] = [-Infinity, -Infinity]
  #sampledAt: Millis = -Infinity

  /** `clock` replaces the server's clock in tests. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock
  }

  /** Records the time of a reply that has just arrived. */
  record(now: Millis): void {
    const at = systemClock.monotonic()
    const offset = now - at
    const age = at - this.#sampledAt
    if (age >= SAMPLE_INTERVAL) {
      this.#offsets = [offset, age >= 2 * SAMPLE_INTERVAL ? -Infinity : this.#offsets[0]]
      this.#sampledAt = at
    } else this.#offsets = [Math.max(this.#offsets[0], offset), this.#offsets[1]]
  }

  /** The estimate is never ahead of the server's clock, and behind it by at most the fastest round trip. Undefined: not known. */
  get now(): Millis | undefined {
    if (this.#clock !== undefined) return this.#clock.now()
    const at = systemClock.monotonic()
    if (at - this.#sampledAt >= 2 * SAMPLE_INTERVAL) return undefined
    return Math.floor(at + Math.max(...this.#offsets))
  }

  /** Another server may have another clock. */
  forget(): void {
    this.#sampledAt = -Infinity
    this.#offsets = [-Infinity, -Infinity]
  }
}
