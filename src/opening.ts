// The store of an app, opened when it is first needed, and what is known through it: what time it is there, and which flows
// all processes have.
import { within, type Clock, type Millis } from './clock.ts'
import type { Flow } from './model/flow.ts'
import type { AnyListener } from './observe/events.ts'
import { KnownFlows } from './receive/known-flows.ts'
import { matcher } from './model/globs.ts'
import { StoreTime } from './schedule/store-time.ts'
import type { Seal } from './seal.ts'
import { sealedStore } from './sealed-store.ts'
import type { Store } from './store/contract/index.ts'
import { openStore } from './store/open.ts'
import { diskUsed } from './operate/disk-used.ts'

export interface OpeningParts {
  readonly clock: Clock
  readonly seal: Seal
  /** Whether the bytes of this source are sealed. */
  readonly isSealed: (source: string) => boolean
  readonly process: () => string
  readonly flows: ReadonlyMap<string, Flow>
  readonly emit: AnyListener
  /** Times the calls of the store on their way through. */
  readonly metered: (store: Store) => Store
}

interface Opened {
  readonly store: Store
  readonly known: KnownFlows
}

export class Opening {
  readonly time: StoreTime
  /** An address, or a store that was opened elsewhere, and is closed there. */
  address: string | Store
  readonly #parts: OpeningParts
  #opened: Promise<Opened> | undefined
  #known: KnownFlows | undefined
  #deaf: () => void = () => {}

  constructor(address: string | Store, parts: OpeningParts) {
    this.address = address
    this.#parts = parts
    this.time = new StoreTime(parts.clock, (by) => {
      const text = `The clock of the store went ${Math.abs(by)} ms ${by < 0 ? 'back' : 'forward'}.`
      parts.emit('alert.raised', { alert: 'clock-step', text })
    })
  }

  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  /** What is known by now: undefined until the store is open. */
  get knownNow(): KnownFlows | undefined {
    return this.#known
  }

  readonly store = async (): Promise<Store> => (await this.#open()).store

  readonly known = async (): Promise<KnownFlows> => (await this.#open()).known

  readonly diskUsed = (): Promise<number | undefined> => diskUsed(this.address)

  async close(most: Millis): Promise<void> {
    this.#deaf()
    if (this.#opened === undefined || typeof this.address !== 'string') return
    const { store } = await this.#opened
    // One that does not answer must not keep the process.
    await within(this.#parts.clock, store.close(), most)
  }

  #open(): Promise<Opened> {
    // A store that could not be opened may be there the next time.
    this.#opened ??= this.#openOnce().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #openOnce(): Promise<Opened> {
    const { address } = this
    const { clock, seal, isSealed, process, flows, emit, metered } = this.#parts
    const bare = typeof address === 'string' ? await openStore(address, { clock }) : address
    const store = sealedStore(metered(bare), seal, isSealed)
    const known = new KnownFlows({
      store,
      process: process(),
      flows: () => [...flows.values()],
      matcher: (globs) => matcher(globs, 'on'),
      conflict: (flow, text) => emit('config.conflict', { flow, text }),
      asking: () => this.time.asking(),
    })
    await known.say()
    this.#known = known
    this.#deaf = store.listen((hint) => {
      if (hint.kind === 'opened') emit('lane.opened', { flow: hint.flow, key: hint.key })
    })
    return { store, known }
  }
}
