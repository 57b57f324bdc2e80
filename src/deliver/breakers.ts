// How each endpoint has fared, in the store, so that all processes agree: written when something changes, not with every POST.
import type { Millis } from '../clock.ts'
import type { Store } from '../store/contract/index.ts'
import { afterPost, CLOSED, type Breaker, type Moved, type PostEnd } from './breaker.ts'

export interface Fared {
  readonly breaker: Breaker
  /** To the minute. */
  readonly lastSuccessfulDeliveryAt: Millis | undefined
}

const KIND = 'endpoint-fared'
const TRIES = 5
const SUCCESS_EVERY: Millis = 60_000
const AT_FIRST: Fared = { breaker: CLOSED, lastSuccessfulDeliveryAt: undefined }

export class Breakers {
  readonly #store: () => Promise<Store>

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  async of(id: string): Promise<Fared> {
    return (await this.#read(id)).fared
  }

  /** What is worth telling of it. */
  async ended(id: string, end: PostEnd): Promise<Moved['told']> {
    let told: Moved['told']
    await this.set(id, (before) => {
      const moved = afterPost(before.breaker, end)
      told = moved.told
      const last = before.lastSuccessfulDeliveryAt
      const isNews = end.kind === 'ok' && (last === undefined || end.now - last >= SUCCESS_EVERY)
      return { breaker: moved.breaker, lastSuccessfulDeliveryAt: isNews ? end.now : last }
    })
    return told
  }

  async set(id: string, change: (before: Fared) => Fared): Promise<void> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const { fared, rev } = await this.#read(id)
      const after = change(fared)
      if (JSON.stringify(after) === JSON.stringify(fared)) return
      const writes = [{ kind: KIND, id, ifRev: rev, body: Buffer.from(JSON.stringify(after)) }]
      if ((await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind === 'written') return
    }
  }

  async forget(id: string): Promise<void> {
    const store = await this.#store()
    const { rev } = await this.#read(id)
    if (rev === 0) return
    await store.writeDocs({
      writes: [{ kind: KIND, id, ifRev: rev, body: undefined }],
      raiseRoutes: false,
      audit: undefined,
    })
  }

  async #read(id: string): Promise<{ readonly fared: Fared; readonly rev: number }> {
    const store = await this.#store()
    const [doc] = (await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })).docs
    if (doc === undefined) return { fared: AT_FIRST, rev: 0 }
    return { fared: JSON.parse(Buffer.from(doc.body).toString()) as Fared, rev: doc.rev }
  }
}
