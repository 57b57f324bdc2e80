// `Readiness` tells `/readyz` whether the app is ready for requests. It limits calls to the store, because anyone may call `/readyz`.
import { waitAtMost, type Clock, type Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'

export interface ReadinessDependencies {
  readonly clock: Clock
  readonly store: () => Promise<Store>
  readonly isStopping: () => boolean
}

/** The store is checked at most this often. */
const CACHE_FOR: Millis = 1_000
/** A store that takes longer counts as unreachable. */
const TIMEOUT: Millis = 5_000

export class Readiness {
  readonly #deps: ReadinessDependencies
  #latest: Promise<string | undefined> | undefined
  #expiresAt: Millis = -Infinity

  constructor(parts: ReadinessDependencies) {
    this.#deps = parts
  }

  readonly findUnreadyReason = async (): Promise<string | undefined> => {
    if (this.#deps.isStopping()) return 'The app is stopping.'
    if (this.#latest === undefined || this.#deps.clock.monotonic() >= this.#expiresAt) {
      // Concurrent calls share one check.
      this.#expiresAt = Infinity
      this.#latest = this.#check().finally(() => (this.#expiresAt = this.#deps.clock.monotonic() + CACHE_FOR))
    }
    return this.#latest
  }

  async #check(): Promise<string | undefined> {
    let why: string | undefined = 'The store does not respond.'
    const response = this.#deps
      .store()
      // The check writes nothing but succeeds only if a write would be acknowledged; a removed file could still be read.
      .then((store) => store.writeDocs({ writes: [], raiseRoutes: false, audit: undefined }))
      .then(
        () => (why = undefined),
        () => {},
      )
    await waitAtMost(this.#deps.clock, response, TIMEOUT)
    return why
  }
}
