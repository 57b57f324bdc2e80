// The rate that Notion accepts: a number of calls in any second. A caller above it gets a 429 with Retry-After, which must be respected.
import type { Millis } from 'sluice'
import { Refusal } from './refusal.ts'

const SECOND = 1_000

export class Rate {
  readonly #most: number
  readonly #window: Millis
  #recent: Millis[] = []
  #closedUntil: Millis = -Infinity
  /** Calls that came although they were told not to yet. */
  disobeyed = 0

  constructor(most: number, window: Millis = SECOND) {
    this.#most = most
    this.#window = window
  }

  /** Throws if the call is one too many. */
  take(now: Millis): void {
    if (now < this.#closedUntil) {
      this.disobeyed++
      throw tooMany((this.#closedUntil - now) / SECOND)
    }
    this.#recent = this.#recent.filter((at) => at > now - this.#window)
    if (this.#recent.length >= this.#most) {
      this.close(now, 1)
      throw tooMany(1)
    }
    this.#recent.push(now)
  }

  /** Whoever was refused until then should not come before. */
  close(now: Millis, seconds: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, now + seconds * SECOND)
  }
}

function tooMany(seconds: number): Refusal {
  return new Refusal(429, 'rate_limited', 'You have been rate limited. Please try again later.', Math.ceil(seconds))
}

/** The most calls in any stretch of a second, wherever it begins. */
export function mostInASecond(times: readonly Millis[]): number {
  const sorted = times.toSorted((one, other) => one - other)
  let [most, from] = [0, 0]
  for (const [at, time] of sorted.entries()) {
    while (time - (sorted[from] ?? time) >= SECOND) from++
    most = Math.max(most, at - from + 1)
  }
  return most
}

/** Of any `calls` + 1 that follow each other, how far the first and the last are apart at least. */
export function closest(times: readonly Millis[], calls: number): Millis {
  const sorted = times.toSorted((one, other) => one - other)
  return Math.min(...sorted.slice(calls).map((at, n) => at - (sorted[n] ?? -Infinity)))
}
