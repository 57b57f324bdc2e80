// `Sessions` keeps the sign-ins of people to the dashboard. A session belongs to an API key and ends with it; the store
// has only the hash of its token.
import { hash, randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { parseDoc, readDoc, toDocBody } from '../store/documents.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import type { ApiKey, Keys } from './keys.ts'

export interface Session {
  readonly key: ApiKey
  readonly until: Millis
}

interface StoredSession {
  /** The id of the key. */
  readonly key: string
  readonly until: Millis
}

const KIND = 'session'
const LASTS: Millis = 12 * 3_600_000
/** How many other sessions each sign-in looks at, to remove those that have ended. */
const SWEPT_PER_SIGN_IN = 50
const TOKEN = /^[\w-]{43}$/

export class Sessions {
  readonly #store: () => Promise<Store>
  readonly #keys: Keys
  readonly #listeners = new Set<() => void>()

  constructor(store: () => Promise<Store>, keys: Keys) {
    this.#store = store
    this.#keys = keys
  }

  /** `onEnd` is called in this process when someone signs out. */
  onEnd(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** `open` returns the token of a new session; only its hash is stored. */
  async open(key: ApiKey): Promise<Session & { readonly token: string }> {
    const store = await this.#store()
    const token = randomBytes(32).toString('base64url')
    const id = toId(token)
    // Ids are hashes, so the sessions after this one are a random sample. Each sign-in cleans up after about 50 others.
    const { docs, now } = await store.readDocs({ kind: KIND, ids: undefined, after: id, n: SWEPT_PER_SIGN_IN })
    const until = now + LASTS
    const kept: StoredSession = { key: key.id, until }
    await store.writeDocs({
      writes: [{ kind: KIND, id, ifRev: 0, body: toDocBody(kept) }],
      raiseRoutes: false,
      audit: { who: key.name, what: 'signed in to the dashboard' },
    })
    for (const doc of docs) if (parseSession(doc).until <= now) await this.#remove(store, doc, undefined)
    return { token, key, until }
  }

  /** `find` returns the session of a token, or undefined if it has ended or its key was revoked. */
  async find(token: string): Promise<Session | undefined> {
    if (!TOKEN.test(token)) return undefined
    const { doc, now } = await readDoc(await this.#store(), KIND, toId(token))
    if (doc === undefined) return undefined
    const { key: id, until } = parseSession(doc)
    const key = until > now ? await this.#keys.find(id) : undefined
    return key === undefined ? undefined : { key, until }
  }

  /** `end` ends the session of a token, if there is one. */
  async end(token: string): Promise<void> {
    const store = await this.#store()
    const { doc } = TOKEN.test(token) ? await readDoc(store, KIND, toId(token)) : { doc: undefined }
    if (doc === undefined) return
    const key = await this.#keys.find(parseSession(doc).key)
    await this.#remove(store, doc, key && { who: key.name, what: 'signed out of the dashboard' })
    for (const listener of this.#listeners) listener()
  }

  async #remove(
    store: Store,
    { kind, id, rev }: Doc,
    audit: { readonly who: string; readonly what: string } | undefined,
  ): Promise<void> {
    await store.writeDocs({ writes: [{ kind, id, ifRev: rev, body: undefined }], raiseRoutes: false, audit })
  }
}

function toId(token: string): string {
  return hash('sha256', token, 'base64url')
}

function parseSession(doc: Doc): StoredSession {
  return parseDoc(doc) as StoredSession
}
