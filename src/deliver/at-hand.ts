// What was read a moment ago, for whoever posts a hundred batches a second: to read it each time would cost as much as the POST.
// What this process changes is known at once; what another changes, within a second.
import type { Clock, Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'

/** Of who reads from the store and has some of it at hand. */
export interface ReaderParts {
  readonly store: () => Promise<Store>
  readonly clock: Pick<Clock, 'monotonic'>
}

const FRESH: Millis = 1_000
const MOST = 10_000

export class AtHand<T> {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #kept = new Map<string, { readonly value: T; readonly until: Millis }>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  get(id: string): T | undefined {
    const kept = this.#kept.get(id)
    return kept !== undefined && this.#clock.monotonic() < kept.until ? kept.value : undefined
  }

  keep(id: string, value: T): void {
    if (this.#kept.size >= MOST) this.#kept.clear()
    this.#kept.set(id, { value, until: this.#clock.monotonic() + FRESH })
  }

  forget(id: string): void {
    this.#kept.delete(id)
  }
}
