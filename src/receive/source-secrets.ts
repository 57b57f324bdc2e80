// The secret of a source that gets it by handshake: kept in the store, sealed, so that all processes verify by it.
import type { Seal } from '../seal.ts'
import type { Store } from '../store/contract/index.ts'
import type { DeclaredSource } from './declared-source.ts'

const KIND = 'source-secret'

export class SourceSecrets {
  readonly #store: () => Promise<Store>
  readonly #seal: Seal
  readonly #known = new Map<string, readonly string[]>()

  constructor(store: () => Promise<Store>, seal: Seal) {
    this.#store = store
    this.#seal = seal
  }

  /** Empty while it waits for its handshake. */
  async of({ name, source }: DeclaredSource): Promise<readonly string[]> {
    if (source.secrets !== 'by-handshake') return source.secrets
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const store = await this.#store()
    const [doc] = (await store.readDocs({ kind: KIND, ids: [name], after: '', n: 1 })).docs
    if (doc === undefined) return []
    const secrets = [this.#seal.open(doc.body, purposeOf(name)).toString()]
    this.#known.set(name, secrets)
    return secrets
  }

  /** False: it has one already, and nobody but its owner may change that. */
  async learn({ name }: DeclaredSource, secret: string): Promise<boolean> {
    const store = await this.#store()
    const body = this.#seal.seal(Buffer.from(secret), purposeOf(name))
    const writes = [{ kind: KIND, id: name, ifRev: 0, body }]
    const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
    return reply.kind !== 'conflict'
  }
}

function purposeOf(source: string): string {
  return `secret of source ${source}`
}
