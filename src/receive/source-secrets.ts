// The secret of a source that gets it by handshake: kept in the store, sealed, so that all processes verify by it.
import type { Clock, Millis } from '../clock.ts'
import type { Seal, SealedDocs } from '../seal.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import type { DeclaredSource } from './declared-source.ts'

const KIND = 'source-secret'
/** Another process may have forgotten it: how long one goes by what it has read. */
const KNOWN_FOR: Millis = 5_000

export const SOURCE_SECRET_DOCS: SealedDocs = {
  kind: KIND,
  resealed: (seal, { id, body }) => seal.resealed(body, purposeOf(id)),
}

export interface SourceSecretsParts {
  readonly store: () => Promise<Store>
  readonly seal: Seal
  readonly clock: Clock
}

interface Known {
  readonly secrets: readonly string[]
  /** On the monotonic clock. */
  readonly until: Millis
}

export class SourceSecrets {
  readonly #parts: SourceSecretsParts
  readonly #known = new Map<string, Known>()
  /** How often this process has forgotten something: what was being read meanwhile may be old. */
  #forgotten = 0

  constructor(parts: SourceSecretsParts) {
    this.#parts = parts
  }

  /** Empty while it waits for its handshake. */
  async of({ name, source }: DeclaredSource): Promise<readonly string[]> {
    if (source.secrets !== 'by-handshake') return source.secrets
    const { clock, seal } = this.#parts
    const known = this.#known.get(name)
    if (known !== undefined && clock.monotonic() < known.until) return known.secrets
    const before = this.#forgotten
    const until = clock.monotonic() + KNOWN_FOR
    const doc = await read(await this.#parts.store(), name)
    this.#known.delete(name)
    if (doc === undefined) return []
    const secrets = [seal.open(doc.body, purposeOf(name)).toString()]
    if (before === this.#forgotten) this.#known.set(name, { secrets, until })
    return secrets
  }

  /** False: it has one already, and nobody but its owner may change that. */
  async learn({ name }: DeclaredSource, secret: string): Promise<boolean> {
    const store = await this.#parts.store()
    const body = this.#parts.seal.seal(Buffer.from(secret), purposeOf(name))
    const writes = [{ kind: KIND, id: name, ifRev: 0, body }]
    const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    return reply.kind !== 'conflict'
  }

  /** What came by handshake, for the eyes of the owner. Undefined: nothing has come. */
  async shown(name: string, by: string): Promise<string | undefined> {
    const store = await this.#parts.store()
    const doc = await read(store, name)
    if (doc === undefined) return undefined
    const secret = this.#parts.seal.open(doc.body, purposeOf(name)).toString()
    // Before it is seen: nobody sees it without an entry.
    await store.writeDocs({ writes: [], raiseRoutes: false, audit: { who: by, what: `show secret of source ${name}` } })
    return secret
  }

  /** The source is pending again. Needs no key: also a secret that nobody can open any more is forgotten. */
  async forget(name: string, by: string): Promise<'forgotten' | 'none'> {
    const store = await this.#parts.store()
    const audit = { who: by, what: `forget secret of source ${name}` }
    for (;;) {
      const doc = await read(store, name)
      const writes = [{ kind: KIND, id: name, ifRev: doc?.rev ?? 0, body: undefined }]
      const isGone =
        doc === undefined || (await store.writeDocs({ writes, raiseRoutes: false, audit })).kind === 'written'
      // Somebody was faster, and a new one may have come since.
      if (!isGone) continue
      this.#forgotten++
      this.#known.delete(name)
      return doc === undefined ? 'none' : 'forgotten'
    }
  }
}

async function read(store: Store, name: string): Promise<Doc | undefined> {
  return (await store.readDocs({ kind: KIND, ids: [name], after: '', n: 1 })).docs[0]
}

function purposeOf(source: string): string {
  return `secret of source ${source}`
}
