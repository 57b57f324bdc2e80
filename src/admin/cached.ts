// `Cached` computes a value at most once per period, for all callers together.
import type { Clock, Millis } from '../clock.ts'

export class Cached<T> {
  readonly #clock: Clock
  readonly #freshFor: Millis
  readonly #compute: () => Promise<T>
  #last: { readonly value: Promise<T>; readonly at: Millis } | undefined

  constructor(clock: Clock, freshFor: Millis, compute: () => Promise<T>) {
    this.#clock = clock
    this.#freshFor = freshFor
    this.#compute = compute
  }

  /** `read` returns the value of this period. A failed computation is repeated by the next call. */
  read(): Promise<T> {
    const at = this.#clock.monotonic()
    if (this.#last !== undefined && at - this.#last.at < this.#freshFor) return this.#last.value
    const value = this.#compute()
    const last = (this.#last = { value, at })
    value.catch(() => {
      if (this.#last === last) this.#last = undefined
    })
    return value
  }
}
