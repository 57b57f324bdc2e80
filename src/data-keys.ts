// The keys that payloads are sealed under: kept in the store, each sealed under a master key. To exchange the master key is
// to seal these few anew, and no payload; and what is sent again is known as the same after it (L10).
import { randomBytes } from 'node:crypto'
import { SluiceError } from './errors.ts'
import { Seal, type SealedDocs } from './seal.ts'
import type { Doc, Store } from './store/contract/index.ts'

const KIND = 'data-key'
const LENGTH = 32
const PAGE = 1_000

export const DATA_KEY_DOCS: SealedDocs = {
  kind: KIND,
  resealed: (seal, { id, body }) => seal.resealed(body, purposeOf(id)),
}

export class DataKeys {
  readonly #store: Pick<Store, 'readDocs' | 'writeDocs'>
  readonly #master: Seal
  #read: Promise<Seal> | undefined

  constructor(store: Pick<Store, 'readDocs' | 'writeDocs'>, master: Seal) {
    this.#store = store
    this.#master = master
  }

  /** Seals under one of them, the same in all processes; made by whoever needs it first. */
  async toSeal(): Promise<Seal> {
    const known = await this.#known()
    if (known.hasKey) return known
    // Named after the master key: of two processes that make one at the same moment, one does.
    const id = this.#master.name
    const body = this.#master.seal(randomBytes(LENGTH), purposeOf(id))
    await this.#store.writeDocs({ writes: [{ kind: KIND, id, ifRev: 0, body }], raiseRoutes: false, audit: undefined })
    const made = await this.#knownAnew()
    // It was made under this key once, and is under a newer one by now.
    if (!made.hasKey) throw new SluiceError('SEAL_UNKNOWN', 'Payloads are sealed under a newer master key by now.')
    return made
  }

  async open(sealed: Uint8Array, purpose: string): Promise<Buffer> {
    const known = await this.#known()
    // Another process may have made one since.
    return (known.has(sealed) ? known : await this.#knownAnew()).open(sealed, purpose)
  }

  #knownAnew(): Promise<Seal> {
    this.#read = undefined
    return this.#known()
  }

  #known(): Promise<Seal> {
    this.#read ??= this.#readAll().catch((error: unknown) => {
      this.#read = undefined
      throw error
    })
    return this.#read
  }

  async #readAll(): Promise<Seal> {
    const { docs } = await this.#store.readDocs({ kind: KIND, ids: undefined, after: '', n: PAGE })
    return new Seal(docs.flatMap((doc) => this.#opened(doc)))
  }

  /** One of a master key that is gone is of no use to us; it stays for who may have it. */
  #opened({ id, body }: Doc): readonly string[] {
    try {
      return [this.#master.open(body, purposeOf(id)).toString('base64')]
    } catch {
      return []
    }
  }
}

function purposeOf(id: string): string {
  return `data key ${id}`
}
