// `StoreHandle` opens the store of an app on first use. It also holds the store's clock and the flows of all processes.
import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { waitAtMost, type Clock, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { FlowRegistry } from '../flow/registry.ts'
import { StoreClock } from '../dispatch/store-clock.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { encryptedStore, type EncryptedSources } from '../crypto/encrypted-store.ts'
import type { Store } from '../store/contract/index.ts'
import { getOutboxSchema, openStore } from '../store/open.ts'

export interface StoreHandleDependencies {
  readonly clock: Clock
  readonly keyring: Keyring
  readonly encrypted: () => EncryptedSources
  readonly process: () => string
  readonly flows: ReadonlyMap<string, Flow>
  readonly emit: AnyListener
  /** Wraps the store so that its calls are timed. */
  readonly meterStore: (store: Store) => Store
}

interface OpenedStore {
  readonly store: Store
  readonly registry: FlowRegistry
}

export class StoreHandle {
  readonly storeClock: StoreClock
  /** An address, or a store that the caller opened and closes. */
  address: string | Store
  readonly #deps: StoreHandleDependencies
  #opened: Promise<OpenedStore> | undefined
  #registry: FlowRegistry | undefined
  #unsubscribe: () => void = () => {}

  constructor(address: string | Store, parts: StoreHandleDependencies) {
    this.address = address
    this.#deps = parts
    this.storeClock = new StoreClock(parts.clock, (by) => {
      const text = `The clock of the store jumped ${Math.abs(by)} ms ${by < 0 ? 'back' : 'forward'}.`
      parts.emit('alert.raised', { alert: 'clock-step', text })
    })
  }

  /** The schema whose `publish` function a user's transaction can call; undefined if the store has none. */
  get outbox(): string | undefined {
    return getOutboxSchema(this.address)
  }

  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  /** The flows of all processes; undefined until the store is open. */
  get loadedRegistry(): FlowRegistry | undefined {
    return this.#registry
  }

  /** Returns whether an append takes the store long enough to overlap with this process. It does on PostgreSQL only. */
  readonly overlaps = (): boolean => this.outbox !== undefined

  readonly store = async (): Promise<Store> => (await this.#open()).store

  readonly registry = async (): Promise<FlowRegistry> => (await this.#open()).registry

  readonly diskUsed = (): Promise<number | undefined> => readDiskUsage(this.address)

  async close(most: Millis): Promise<void> {
    this.#unsubscribe()
    if (this.#opened === undefined || typeof this.address !== 'string') return
    const { store } = await this.#opened
    // A store that does not answer must not keep the process alive.
    await waitAtMost(this.#deps.clock, store.close(), most)
  }

  #open(): Promise<OpenedStore> {
    // A failed open may succeed the next time.
    this.#opened ??= this.#openOnce().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #openOnce(): Promise<OpenedStore> {
    const { address } = this
    const { clock, keyring, encrypted, process, flows, emit, meterStore } = this.#deps
    const bare = typeof address === 'string' ? await openStore(address, { clock }) : address
    const store = encryptedStore(meterStore(bare), keyring, encrypted())
    const registry = new FlowRegistry({
      store,
      process: process(),
      flows: () => [...flows.values()],
      onConflict: (flow, text) => emit('config.conflict', { flow, text }),
      startCall: () => this.storeClock.startCall(),
    })
    await registry.declare()
    this.#registry = registry
    this.#unsubscribe = store.listen((hint) => {
      if (hint.kind === 'opened') emit('lane.opened', { flow: hint.flow, key: hint.key })
    })
    return { store, registry }
  }
}

const SQLITE_PREFIX = 'sqlite:'

/** `readDiskUsage` returns 0 to 1, or undefined if the store is not a file or its disk does not report its size. */
export async function readDiskUsage(address: unknown): Promise<number | undefined> {
  if (typeof address !== 'string' || !address.startsWith(SQLITE_PREFIX) || address === `${SQLITE_PREFIX}:memory:`)
    return undefined
  try {
    const { blocks, bavail } = await statfs(dirname(resolve(address.slice(SQLITE_PREFIX.length))))
    return blocks === 0 ? undefined : 1 - bavail / blocks
  } catch {
    return undefined
  }
}
