// What was read a moment ago, for whoever posts a hundred batches a second: to read it each time would cost as much as the POST.
// It holds for a second, or until somebody has said that it may be another, in this process or by an epoch in any.
import type { Clock, Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'

/** Of who reads from the store and has some of it at hand. */
export interface ReaderParts {
  readonly store: () => Promise<Store>
  readonly clock: Pick<Clock, 'monotonic'>
  /** The newest epoch of the routes that this process has heard of. */
  readonly routesHeard: () => number
}

const FRESH: Millis = 1_000
const MOST = 10_000

interface Kept<T> {
  readonly value: T
  readonly until: Millis
  readonly epoch: number
}

export class AtHand<T> {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #epoch: () => number
  readonly #kept = new Map<string, Kept<T>>()

  constructor(clock: Pick<Clock, 'monotonic'>, epoch: () => number = () => 0) {
    this.#clock = clock
    this.#epoch = epoch
  }

  get(id: string): T | undefined {
    const kept = this.#kept.get(id)
    const holds = kept !== undefined && kept.epoch >= this.#epoch() && this.#clock.monotonic() < kept.until
    return holds ? kept.value : undefined
  }

  /** `epoch`: no newer than what was read. */
  keep(id: string, value: T, epoch = 0): void {
    if (this.#kept.size >= MOST) this.#kept.clear()
    this.#kept.set(id, { value, until: this.#clock.monotonic() + FRESH, epoch })
  }

  forget(id: string): void {
    this.#kept.delete(id)
  }
}
