// `VirtualClock` moves only when a test advances it, so that an hour of waiting takes a millisecond and is deterministic.
import type { Clock, Millis } from '../clock.ts'

interface Timer {
  readonly at: Millis
  readonly call: () => void
}

export class VirtualClock implements Clock {
  readonly isVirtual = true
  #now: Millis
  #passed: Millis = 0
  readonly #timers = new Set<Timer>()
  #pending = 0
  #settledCalls = 0
  #nextSettled = Promise.withResolvers<void>()

  constructor(start: Millis = Date.UTC(2026, 0, 1)) {
    this.#now = start
  }

  now(): Millis {
    return Math.floor(this.#now)
  }

  monotonic(): Millis {
    return this.#passed
  }

  after(delay: Millis, call: () => void): () => void {
    const timer: Timer = { at: this.#passed + Math.max(0, delay), call }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /** Steps the wall time forward or back, like a corrected clock. No time passes and no timer fires. */
  set(now: Millis): void {
    this.#now = now
  }

  /** Advances the clock. Timers fire in order at their own times, including those set on the way. */
  advance(by: Millis): void {
    const end = this.#passed + by
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next)
      this.#pass(Math.max(0, next.at - this.#passed))
      next.call()
    }
    this.#pass(Math.max(0, end - this.#passed))
  }

  /** Wraps a store or another client of real I/O: time stands still while one of its calls is pending. */
  watch<T extends object>(client: T): T {
    return new Proxy(client, {
      get: (target, name): unknown => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        return (...args: unknown[]): unknown => {
          const result: unknown = Reflect.apply(member, target, args)
          return result instanceof Promise ? this.track(result) : result
        }
      },
    })
  }

  /** Time stands still until the work has settled. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#pending++
    return work.finally(() => {
      this.#pending--
      this.#settledCalls++
      this.#nextSettled.resolve()
      this.#nextSettled = Promise.withResolvers()
    })
  }

  /** Resolves when the next pending call settles. */
  get nextSettled(): Promise<void> {
    return this.#nextSettled.promise
  }

  /** Calls of watched clients that are pending, and that have settled so far. */
  get calls(): { readonly pending: number; readonly settled: number } {
    return { pending: this.#pending, settled: this.#settledCalls }
  }

  /** The time of the next timer, on the monotonic clock. */
  next(): Millis | undefined {
    return this.#next(Infinity)?.at
  }

  #pass(by: Millis): void {
    this.#passed += by
    this.#now += by
  }

  #next(end: Millis): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) if (timer.at <= end && timer.at < (first?.at ?? Infinity)) first = timer
    return first
  }
}
