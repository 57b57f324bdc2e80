// Counts the calls that lie within any one second, on the clock that only goes forward.
import type { Millis } from 'sluice'

const SECOND: Millis = 1_000

export class CallMeter {
  /** Those of the last second, oldest first. */
  #recent: Millis[] = []
  total = 0
  /** The most calls ever seen in a window of one second, wherever it begins. */
  most = 0

  add(handed: Millis): void {
    this.total++
    this.#recent.push(handed)
    this.most = Math.max(this.most, this.within(handed))
  }

  /** How many in the second that ends now. */
  within(now: Millis): number {
    this.#recent = this.#recent.filter((handed) => handed > now - SECOND)
    return this.#recent.length
  }
}
