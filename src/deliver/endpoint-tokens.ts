// `EndpointTokens` manages the tokens of subscribers. An operator creates a token; Sluice shows it once and stores
// its hash. It gives access to one endpoint only.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Doc, Store, WriteDocsCall } from '../store/contract/index.ts'
import { changeDoc, parseDoc, readDoc, toDocBody } from '../store/documents.ts'

const KIND = 'endpoint-token'
const PREFIX = 'slt'
/** Every endpoint id is this prefix and twelve characters. */
const ENDPOINT = 'ep_'
const TOKEN = /^slt_([\w-]{12})_([\w-]{43})$/

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
    await this.#write(endpoint, kept, { who: by, what: `made a token for endpoint ${endpoint}` })
    return token
  }

  async revoke(endpoint: string, by: string): Promise<'ok' | 'missing'> {
    if ((await this.#read(endpoint)) === undefined) return 'missing'
    await this.#write(endpoint, undefined, { who: by, what: `revoked the token of endpoint ${endpoint}` })
    return 'ok'
  }

  async forget(endpoint: string): Promise<void> {
    await this.#write(endpoint, undefined, undefined)
  }

  /** `findOwner` returns the id of the token's endpoint; undefined for an unknown token. It compares in constant time. */
  async findOwner(token: string): Promise<string | undefined> {
    const part = TOKEN.exec(token)?.[1]
    if (part === undefined) return undefined
    const endpoint = `${ENDPOINT}${part}`
    const doc = await this.#read(endpoint)
    if (doc === undefined) return undefined
    const { hash: wanted } = parseDoc(doc) as StoredToken
    return timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(wanted)) ? endpoint : undefined
  }

  async #read(endpoint: string): Promise<Doc | undefined> {
    return (await readDoc(await this.#store(), KIND, endpoint)).doc
  }

  async #write(endpoint: string, token: StoredToken | undefined, audit: WriteDocsCall['audit']): Promise<void> {
    const what = { kind: KIND, id: endpoint, title: `the token of endpoint ${endpoint}`, audit }
    await changeDoc(await this.#store(), what, () => ({ body: token && toDocBody(token), result: undefined }))
  }
}

/** A token has 256 random bits and therefore needs no slow hash. */
function hashToken(token: string): string {
  return hash('sha256', token, 'base64url')
}
