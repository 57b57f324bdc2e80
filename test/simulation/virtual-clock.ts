// A clock that moves only when a history moves it, back as well as forward: a year of leases and windows in a millisecond.
import type { Clock, Millis } from '../../src/clock.ts'

interface Timer {
  readonly at: Millis
  readonly order: number
  readonly call: () => void
}

export class VirtualClock implements Clock {
  readonly isVirtual = true
  #wall: Millis
  #elapsed: Millis = 0
  #timers: Timer[] = []
  #order = 0

  constructor(start: Millis) {
    this.#wall = start
  }

  now(): Millis {
    return this.#wall
  }

  monotonic(): Millis {
    return this.#elapsed
  }

  after(delay: Millis, call: () => void): () => void {
    const timer = { at: this.#elapsed + Math.max(delay, 0), order: this.#order++, call }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** Advances the time: timers fire in order, each at its own time. */
  advance(by: Millis): void {
    const wallEnd = this.#wall + by
    const end = this.#elapsed + by
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end)
      const next = due.toSorted((a, b) => a.at - b.at || a.order - b.order)[0]
      if (next === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#wall += next.at - this.#elapsed
      this.#elapsed = next.at
      next.call()
    }
    this.#wall = wallEnd
    this.#elapsed = end
  }

  /** Sets the wall clock: no time has passed, and no timer fires. */
  jump(by: Millis): void {
    this.#wall += by
  }
}
