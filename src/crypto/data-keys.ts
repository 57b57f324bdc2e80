// `DataKeys` holds the keys that encrypt payloads. The store keeps them, each encrypted with an encryption key. Rotating that key
// encrypts only these few keys again and no payload, so duplicates are still recognised afterwards (L10).
import { randomBytes } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import { Keyring, type EncryptedDocs } from './keyring.ts'
import type { Doc, Store } from '../store/contract/index.ts'

const KIND = 'data-key'
const KEY_LENGTH = 32
const PAGE = 1_000

export const DATA_KEY_DOCS: EncryptedDocs = {
  kind: KIND,
  reencrypt: (keyring, { id, body }) => keyring.reencrypt(body, dataKeyPurpose(id)),
}

export class DataKeys {
  readonly #store: Pick<Store, 'readDocs' | 'writeDocs'>
  readonly #keyring: Keyring
  #loading: Promise<Keyring> | undefined

  constructor(store: Pick<Store, 'readDocs' | 'writeDocs'>, keyring: Keyring) {
    this.#store = store
    this.#keyring = keyring
  }

  /** `encryptionKeyring` encrypts with one data key, the same in all processes. The first process that needs it creates it. */
  async encryptionKeyring(): Promise<Keyring> {
    const known = await this.#load()
    if (known.hasKey) return known
    // The data key is named after the encryption key, so of two processes that create it at once, only one succeeds.
    const id = this.#keyring.keyName
    const body = this.#keyring.encrypt(randomBytes(KEY_LENGTH), dataKeyPurpose(id))
    await this.#store.writeDocs({ writes: [{ kind: KIND, id, ifRev: 0, body }], raiseRoutes: false, audit: undefined })
    const created = await this.#reload()
    // The data key was created with this encryption key and has been encrypted with a newer one since.
    if (!created.hasKey) {
      const what = 'The data key is encrypted with a newer encryption key.'
      throw new SluiceError(
        'ENCRYPTION_KEY_UNKNOWN',
        what,
        undefined,
        'Put the newer key before the keys of this process.',
      )
    }
    return created
  }

  async decrypt(encrypted: Uint8Array, purpose: string): Promise<Buffer> {
    const known = await this.#load()
    // Another process may have created a data key since.
    return (known.canDecrypt(encrypted) ? known : await this.#reload()).decrypt(encrypted, purpose)
  }

  #reload(): Promise<Keyring> {
    this.#loading = undefined
    return this.#load()
  }

  #load(): Promise<Keyring> {
    this.#loading ??= this.#readAll().catch((error: unknown) => {
      this.#loading = undefined
      throw error
    })
    return this.#loading
  }

  async #readAll(): Promise<Keyring> {
    const { docs } = await this.#store.readDocs({ kind: KIND, ids: undefined, after: '', n: PAGE })
    return new Keyring(docs.flatMap((doc) => this.#decryptKey(doc)))
  }

  /** A data key whose encryption key is missing is skipped; it stays in the store for processes that have the key. */
  #decryptKey({ id, body }: Doc): readonly string[] {
    try {
      return [this.#keyring.decrypt(body, dataKeyPurpose(id)).toString('base64')]
    } catch {
      return []
    }
  }
}

function dataKeyPurpose(id: string): string {
  return `data key ${id}`
}
