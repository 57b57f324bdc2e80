// Gives each test an empty store on a server: a prefix of its own, whose keys are removed when the test has ended.
import type { Clock } from '../../src/clock.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openRedisStore } from '../../src/store/redis/store.ts'

interface Opened {
  readonly prefix: string
  readonly clock: Clock
}

export class EmptyStores {
  readonly #url: string
  readonly #label: string
  readonly #opened = new Map<Store, Opened>()
  #made = 0

  constructor(url: string, label: string) {
    this.#url = url
    this.#label = label
  }

  open(clock: Clock): Promise<Store> {
    return this.#open({ prefix: `${this.#label}-${process.pid}-${this.#made++}`, clock })
  }

  /** Opens the same store as another process would. */
  beside(store: Store): Promise<Store> {
    return this.#open(this.#find(store))
  }

  /** Opens the same store as after a restart. */
  async again(store: Store, clock: Clock): Promise<Store> {
    const { prefix } = this.#find(store)
    await store.close()
    return this.#open({ prefix, clock })
  }

  /** Closes the opened stores. */
  async letGo(): Promise<void> {
    await Promise.all([...this.#opened.keys()].map((store) => store.close()))
    this.#opened.clear()
  }

  async #open(opened: Opened): Promise<Store> {
    const store = await openRedisStore({ url: this.#url, ...opened })
    this.#opened.set(store, opened)
    return store
  }

  #find(store: Store): Opened {
    const opened = this.#opened.get(store)
    if (opened === undefined) throw new Error('This store was opened by somebody else.')
    return opened
  }
}
