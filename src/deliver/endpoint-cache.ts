// `RecentCache` keeps values that were just read, because a read before each POST would cost as much as the POST. An
// entry is valid for one second, unless this process deletes it or a newer epoch arrives from any process.
import type { Clock, Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'

/** What a class needs that reads from the store and caches some of it. */
export interface ReaderDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Pick<Clock, 'monotonic'>
  /** Returns the newest epoch of the routes that this process knows. */
  readonly knownRoutesEpoch: () => number
}

const FRESH_FOR: Millis = 1_000
const MAX_ENTRIES = 10_000

interface CacheEntry<T> {
  readonly value: T
  readonly until: Millis
  readonly epoch: number
}

export class RecentCache<T> {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #epoch: () => number
  readonly #entries = new Map<string, CacheEntry<T>>()

  constructor(clock: Pick<Clock, 'monotonic'>, epoch: () => number = () => 0) {
    this.#clock = clock
    this.#epoch = epoch
  }

  get(id: string): T | undefined {
    const kept = this.#entries.get(id)
    const holds = kept !== undefined && kept.epoch >= this.#epoch() && this.#clock.monotonic() < kept.until
    return holds ? kept.value : undefined
  }

  /** `epoch` must not be newer than the value. */
  set(id: string, value: T, epoch = 0): void {
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear()
    this.#entries.set(id, { value, until: this.#clock.monotonic() + FRESH_FOR, epoch })
  }

  delete(id: string): void {
    this.#entries.delete(id)
  }
}
