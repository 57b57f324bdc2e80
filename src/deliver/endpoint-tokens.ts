// `EndpointTokens` manages the tokens of subscribers. An operator creates a token; Sluice shows it once and stores
// its hash. It gives access to one endpoint only.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import type { Doc, Store } from '../store/contract/index.ts'

const KIND = 'endpoint-token'
const PREFIX = 'slt'
/** Every endpoint id is this prefix and twelve characters. */
const ENDPOINT = 'ep_'
const TOKEN = /^slt_([\w-]{12})_([\w-]{43})$/
const TRIES = 10

interface StoredToken {
  readonly hash: string
}

export class EndpointTokens {
  readonly #store: () => Promise<Store>

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** `create` replaces the previous token. */
  async create(endpoint: string, by: string): Promise<string> {
    const random = randomBytes(32).toString('base64url')
    const token = `${PREFIX}_${endpoint.slice(ENDPOINT.length)}_${random}`
    const kept: StoredToken = { hash: hashToken(token) }
    await this.#writeDoc(endpoint, Buffer.from(JSON.stringify(kept)), {
      who: by,
      what: `made a token for endpoint ${endpoint}`,
    })
    return token
  }

  async revoke(endpoint: string, by: string): Promise<'ok' | 'missing'> {
    if ((await this.#readDoc(endpoint)) === undefined) return 'missing'
    await this.#writeDoc(endpoint, undefined, { who: by, what: `revoked the token of endpoint ${endpoint}` })
    return 'ok'
  }

  async forget(endpoint: string): Promise<void> {
    if ((await this.#readDoc(endpoint)) !== undefined) await this.#writeDoc(endpoint, undefined, undefined)
  }

  /**
   * `findOwner` returns the id of the token's endpoint, or undefined for an unknown token. It compares in constant
   * time.
   */
  async findOwner(token: string): Promise<string | undefined> {
    const part = TOKEN.exec(token)?.[1]
    if (part === undefined) return undefined
    const endpoint = `${ENDPOINT}${part}`
    const doc = await this.#readDoc(endpoint)
    if (doc === undefined) return undefined
    const { hash: wanted } = JSON.parse(Buffer.from(doc.body).toString()) as StoredToken
    return timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(wanted)) ? endpoint : undefined
  }

  async #readDoc(endpoint: string): Promise<Doc | undefined> {
    const store = await this.#store()
    return (await store.readDocs({ kind: KIND, ids: [endpoint], after: '', n: 1 })).docs[0]
  }

  async #writeDoc(
    endpoint: string,
    body: Buffer | undefined,
    audit: { readonly who: string; readonly what: string } | undefined,
  ): Promise<void> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const ifRev = (await this.#readDoc(endpoint))?.rev ?? 0
      // Another caller has already removed the token.
      if (ifRev === 0 && body === undefined) return
      const writes = [{ kind: KIND, id: endpoint, ifRev, body }]
      if ((await store.writeDocs({ writes, raiseRoutes: false, audit })).kind === 'written') return
    }
    throw new SluiceError('CONFLICT', `Other processes keep changing the token of endpoint ${endpoint}. Try again.`)
  }
}

/** A token has 256 random bits and therefore needs no slow hash. */
function hashToken(token: string): string {
  return hash('sha256', token, 'base64url')
}
