// How each endpoint fares, in the store, so that all processes agree: written when something changes, not with every POST.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { Doc, ReadDocsReply, Store } from '../store/contract/index.ts'
import { AtHand, type ReaderParts } from './at-hand.ts'
import { admit, afterPost, CLOSED, type Admitted, type Breaker, type Moved, type PostEnd } from './breaker.ts'

const KIND = 'endpoint-fared'
const TRIES = 10
const PAGE = 500

export interface BreakersParts extends Pick<ReaderParts, 'store' | 'clock'> {
  /** Endpoints of these that were removed. */
  readonly gone: (ids: readonly string[]) => Promise<readonly string[]>
}

interface Decided<T> {
  /** Undefined: nothing is kept of it. */
  readonly after: Breaker | undefined
  readonly answer: T
}

export class Breakers {
  readonly #store: () => Promise<Store>
  readonly #gone: BreakersParts['gone']
  /** Of endpoints that are well, as nearly all are: of any other it is asked each time. */
  readonly #well: AtHand<Breaker>

  constructor({ store, clock, gone }: BreakersParts) {
    this.#store = store
    this.#gone = gone
    this.#well = new AtHand(clock)
  }

  async of(id: string): Promise<Breaker> {
    return this.#well.get(id) ?? (await this.#read(id)).breaker
  }

  async all(ids: readonly string[]): Promise<ReadonlyMap<string, Breaker>> {
    const store = await this.#store()
    const breakers = new Map<string, Breaker>()
    for (let from = 0; from < ids.length; from += PAGE) {
      const some = ids.slice(from, from + PAGE)
      const { docs } = await store.readDocs({ kind: KIND, ids: some, after: '', n: some.length })
      for (const doc of docs) breakers.set(doc.id, breakerIn(doc))
    }
    return breakers
  }

  /** Those that were disabled before then. */
  async *disabledBefore(at: Millis): AsyncGenerator<string> {
    const store = await this.#store()
    for (let after: string | undefined = ''; after !== undefined;) {
      const page: ReadDocsReply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      for (const doc of page.docs) {
        const breaker = breakerIn(doc)
        if (breaker.kind === 'disabled' && breaker.at < at) yield doc.id
      }
      after = page.next
    }
  }

  /** Whether this run may post to it now. Where it is to be the probe, it is so only by what nobody has changed meanwhile. */
  async admit(id: string, run: string, now: Millis): Promise<Admitted> {
    const well = this.#well.get(id)
    if (well !== undefined) return admit(well, run, now)
    return this.#change(id, (before) => {
      const admitted = admit(before, run, now)
      return { after: admitted.kind === 'go' ? admitted.breaker : before, answer: admitted }
    })
  }

  /** What is worth telling of it. */
  async ended(id: string, end: PostEnd): Promise<Moved['told']> {
    if (end.kind === 'ok' && this.#well.get(id) !== undefined) return undefined
    return this.#change(id, (before) => {
      const { breaker, told } = afterPost(before, end)
      return { after: breaker, answer: told }
    })
  }

  async forget(id: string): Promise<void> {
    await this.#change(id, () => ({ after: undefined, answer: undefined }))
  }

  /** Against the revision that it was decided on; by others' word in between it is decided anew. */
  async #change<T>(id: string, decide: (before: Breaker) => Decided<T>): Promise<T> {
    const store = await this.#store()
    this.#well.forget(id)
    for (let tries = 0; tries < TRIES; tries++) {
      const { breaker, rev } = await this.#read(id)
      const { after, answer } = decide(breaker)
      const isSame = after === undefined ? rev === 0 : JSON.stringify(after) === JSON.stringify(breaker)
      if (isSame) return answer
      const body = after && Buffer.from(JSON.stringify(after))
      const writes = [{ kind: KIND, id, ifRev: rev, body }]
      const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
      this.#well.forget(id)
      if (reply.kind !== 'written') continue
      // Who removes an endpoint forgets how it fared after that: what was begun later is not known to them.
      const isBegun = rev === 0 && after !== undefined
      if (isBegun && (await this.#gone([id])).length > 0) await this.forget(id)
      return answer
    }
    throw new SluiceError('NOT_POSSIBLE', `Others note how endpoint ${id} fares all the time; try again.`)
  }

  async #read(id: string): Promise<{ readonly breaker: Breaker; readonly rev: number }> {
    const store = await this.#store()
    const [doc] = (await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })).docs
    const breaker = doc === undefined ? CLOSED : breakerIn(doc)
    if (breaker.kind === 'closed' && breaker.failures === 0) this.#well.keep(id, breaker)
    return { breaker, rev: doc?.rev ?? 0 }
  }
}

function breakerIn(doc: Doc): Breaker {
  return JSON.parse(Buffer.from(doc.body).toString()) as Breaker
}
