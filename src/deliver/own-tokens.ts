// The token of a subscriber's own: made by who operates the app, shown once, kept as a hash. Whoever has it may look after one
// endpoint, and nothing else.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import type { Doc, Store } from '../store/contract/index.ts'

const KIND = 'endpoint-token'
const PREFIX = 'slt'
/** Ids of endpoints begin alike, and go on with twelve characters. */
const ENDPOINT = 'ep_'
const TOKEN = /^slt_([\w-]{12})_([\w-]{43})$/
const TRIES = 10

interface KeptToken {
  readonly hash: string
}

export class OwnTokens {
  readonly #store: () => Promise<Store>

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  /** Ends the one before. */
  async make(endpoint: string, by: string): Promise<string> {
    const chance = randomBytes(32).toString('base64url')
    const token = `${PREFIX}_${endpoint.slice(ENDPOINT.length)}_${chance}`
    const kept: KeptToken = { hash: hashOf(token) }
    await this.#write(endpoint, Buffer.from(JSON.stringify(kept)), {
      who: by,
      what: `made a token for endpoint ${endpoint}`,
    })
    return token
  }

  async revoke(endpoint: string, by: string): Promise<'ok' | 'missing'> {
    if ((await this.#doc(endpoint)) === undefined) return 'missing'
    await this.#write(endpoint, undefined, { who: by, what: `revoked the token of endpoint ${endpoint}` })
    return 'ok'
  }

  async forget(endpoint: string): Promise<void> {
    if ((await this.#doc(endpoint)) !== undefined) await this.#write(endpoint, undefined, undefined)
  }

  /** The endpoint it is for. Compared in constant time; undefined: nobody has it. */
  async ownerOf(token: string): Promise<string | undefined> {
    const part = TOKEN.exec(token)?.[1]
    if (part === undefined) return undefined
    const endpoint = `${ENDPOINT}${part}`
    const doc = await this.#doc(endpoint)
    if (doc === undefined) return undefined
    const { hash: wanted } = JSON.parse(Buffer.from(doc.body).toString()) as KeptToken
    return timingSafeEqual(Buffer.from(hashOf(token)), Buffer.from(wanted)) ? endpoint : undefined
  }

  async #doc(endpoint: string): Promise<Doc | undefined> {
    const store = await this.#store()
    return (await store.readDocs({ kind: KIND, ids: [endpoint], after: '', n: 1 })).docs[0]
  }

  async #write(
    endpoint: string,
    body: Buffer | undefined,
    audit: { readonly who: string; readonly what: string } | undefined,
  ): Promise<void> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const ifRev = (await this.#doc(endpoint))?.rev ?? 0
      // Somebody else has removed it.
      if (ifRev === 0 && body === undefined) return
      const writes = [{ kind: KIND, id: endpoint, ifRev, body }]
      if ((await store.writeDocs({ writes, raiseRoutes: false, audit })).kind === 'written') return
    }
    throw new SluiceError('NOT_POSSIBLE', `Others change the token of endpoint ${endpoint} all the time; try again.`)
  }
}

/** 256 bits of chance need no slow hash. */
function hashOf(token: string): string {
  return hash('sha256', token, 'base64url')
}
