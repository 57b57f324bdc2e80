// `SourceSecrets` stores the secret that a source gets by handshake, encrypted, so that all processes verify with it.
import type { Clock, Millis } from '../clock.ts'
import type { Keyring, EncryptedDocs } from '../crypto/keyring.ts'
import type { Store } from '../store/contract/index.ts'
import { changeDoc, readDoc } from '../store/documents.ts'
import type { DeclaredSource } from './source-options.ts'

const KIND = 'source-secret'
/** How long a process uses the secret it has read: another process may have forgotten it. */
const CACHE_FOR: Millis = 5_000

export const SOURCE_SECRET_DOCS: EncryptedDocs = {
  kind: KIND,
  reencrypt: (keyring, { id, body }) => keyring.reencrypt(body, sourceSecretPurpose(id)),
}

export interface SourceSecretsDependencies {
  readonly store: () => Promise<Store>
  readonly keyring: Keyring
  readonly clock: Clock
}

interface CachedSecrets {
  readonly secrets: readonly string[]
  /** A time on the monotonic clock. */
  readonly until: Millis
}

export class SourceSecrets {
  readonly #deps: SourceSecretsDependencies
  readonly #cache = new Map<string, CachedSecrets>()
  /** The number of times this process has forgotten a secret. A read that overlaps with it may return the old
      secret. */
  #forgetCount = 0

  constructor(parts: SourceSecretsDependencies) {
    this.#deps = parts
  }

  /** `read` returns an empty list while the source waits for its handshake. */
  async read({ name, source }: DeclaredSource): Promise<readonly string[]> {
    if (source.secrets !== 'by-handshake') return source.secrets
    const { clock, keyring } = this.#deps
    const known = this.#cache.get(name)
    if (known !== undefined && clock.monotonic() < known.until) return known.secrets
    const before = this.#forgetCount
    const until = clock.monotonic() + CACHE_FOR
    const { doc } = await readDoc(await this.#deps.store(), KIND, name)
    this.#cache.delete(name)
    if (doc === undefined) return []
    const secrets = [keyring.decrypt(doc.body, sourceSecretPurpose(name)).toString()]
    if (before === this.#forgetCount) this.#cache.set(name, { secrets, until })
    return secrets
  }

  /** `save` returns false if the source already has a secret: only its owner may change that. */
  async save({ name }: DeclaredSource, secret: string): Promise<boolean> {
    const store = await this.#deps.store()
    const body = this.#deps.keyring.encrypt(Buffer.from(secret), sourceSecretPurpose(name))
    const writes = [{ kind: KIND, id: name, ifRev: 0, body }]
    const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    return reply.kind !== 'conflict'
  }

  /** `reveal` shows the owner the secret that came by handshake. Undefined if none has come. */
  async reveal(name: string, by: string): Promise<string | undefined> {
    const store = await this.#deps.store()
    const { doc } = await readDoc(store, KIND, name)
    if (doc === undefined) return undefined
    const secret = this.#deps.keyring.decrypt(doc.body, sourceSecretPurpose(name)).toString()
    // The audit entry is written first: no one sees the secret without an entry.
    await store.writeDocs({ writes: [], raiseRoutes: false, audit: { who: by, what: `show secret of source ${name}` } })
    return secret
  }

  /** `forget` makes the source pending again. It needs no key: a secret whose key is lost can be
      forgotten too. */
  async forget(name: string, by: string): Promise<'forgotten' | 'none'> {
    const store = await this.#deps.store()
    const audit = { who: by, what: `forget secret of source ${name}` }
    const change = { kind: KIND, id: name, title: `the secret of source ${name}`, audit }
    const result = await changeDoc(store, change, (doc) => ({
      body: undefined,
      result: doc === undefined ? ('none' as const) : ('forgotten' as const),
    }))
    this.#forgetCount++
    this.#cache.delete(name)
    return result
  }
}

function sourceSecretPurpose(source: string): string {
  return `secret of source ${source}`
}
