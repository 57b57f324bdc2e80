// `BreakerStore` keeps the breaker of each endpoint in the store, so that all processes agree. It writes only
// changes, not every POST.
import type { Millis } from '../../clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Doc, ReadDocsReply, Store } from '../../store/contract/index.ts'
import { RecentCache, type ReaderDependencies } from '../endpoint-cache.ts'
import {
  admit,
  transitionAfterPost,
  CLOSED,
  probeNow,
  type Admission,
  type Breaker,
  type BreakerTransition,
  type BreakerInput,
} from './breaker.ts'

const KIND = 'endpoint-fared'
const TRIES = 10
const PAGE = 500

export interface BreakerStoreDependencies extends Pick<ReaderDependencies, 'store' | 'clock'> {
  /** Returns the endpoints of this list that were deleted. */
  readonly gone: (ids: readonly string[]) => Promise<readonly string[]>
}

interface BreakerDecision<T> {
  /** Undefined removes the stored breaker. */
  readonly next: Breaker | undefined
  readonly result: T
}

export class BreakerStore {
  readonly #store: () => Promise<Store>
  readonly #gone: BreakerStoreDependencies['gone']
  /** Only healthy endpoints, which are nearly all. Any other is read each time. */
  readonly #healthy: RecentCache<Breaker>

  constructor({ store, clock, gone }: BreakerStoreDependencies) {
    this.#store = store
    this.#gone = gone
    this.#healthy = new RecentCache(clock)
  }

  async get(id: string): Promise<Breaker> {
    return this.#healthy.get(id) ?? (await this.#read(id)).breaker
  }

  async getAll(ids: readonly string[]): Promise<ReadonlyMap<string, Breaker>> {
    const store = await this.#store()
    const breakers = new Map<string, Breaker>()
    for (let from = 0; from < ids.length; from += PAGE) {
      const some = ids.slice(from, from + PAGE)
      const { docs } = await store.readDocs({ kind: KIND, ids: some, after: '', n: some.length })
      for (const doc of docs) breakers.set(doc.id, parseBreaker(doc))
    }
    return breakers
  }

  /** `disabledBefore` yields the endpoints that were disabled before `at`. */
  async *disabledBefore(at: Millis): AsyncGenerator<string> {
    const store = await this.#store()
    for (let after: string | undefined = ''; after !== undefined;) {
      const page: ReadDocsReply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      for (const doc of page.docs) {
        const breaker = parseBreaker(doc)
        if (breaker.kind === 'disabled' && breaker.at < at) yield doc.id
      }
      after = page.next
    }
  }

  /**
   * `admit` decides whether this run may post now. A probe is admitted only if the breaker has not changed meanwhile.
   */
  async admit(id: string, run: string, now: Millis): Promise<Admission> {
    const well = this.#healthy.get(id)
    if (well !== undefined) return admit(well, run, now)
    return this.#change(id, (before) => {
      const admitted = admit(before, run, now)
      return { next: admitted.kind === 'go' ? admitted.breaker : before, result: admitted }
    })
  }

  /** `recordPost` returns the transition that deserves an event, if any. */
  async recordPost(id: string, end: BreakerInput): Promise<BreakerTransition['event']> {
    if (end.kind === 'ok' && this.#healthy.get(id) !== undefined) return undefined
    return this.#change(id, (before) => {
      const { breaker, event } = transitionAfterPost(before, end)
      return { next: breaker, result: event }
    })
  }

  /** `probeNow` returns whether the breaker was open: the next run of the endpoint is then its probe. */
  probeNow(id: string, now: Millis): Promise<boolean> {
    return this.#change(id, (before) => ({ next: probeNow(before, now), result: before.kind === 'open' }))
  }

  async forget(id: string): Promise<void> {
    await this.#change(id, () => ({ next: undefined, result: undefined }))
  }

  /** Writes against the revision that was read. After a concurrent change it decides again. */
  async #change<T>(id: string, decide: (before: Breaker) => BreakerDecision<T>): Promise<T> {
    const store = await this.#store()
    this.#healthy.delete(id)
    for (let tries = 0; tries < TRIES; tries++) {
      const { breaker, rev } = await this.#read(id)
      const { next: after, result: answer } = decide(breaker)
      const isSame = after === undefined ? rev === 0 : JSON.stringify(after) === JSON.stringify(breaker)
      if (isSame) return answer
      const body = after && Buffer.from(JSON.stringify(after))
      const writes = [{ kind: KIND, id, ifRev: rev, body }]
      const reply = await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })
      this.#healthy.delete(id)
      if (reply.kind !== 'written') continue
      // `delete` forgets the breaker after it deletes the endpoint, so a breaker stored later is removed here.
      const isBegun = rev === 0 && after !== undefined
      if (isBegun && (await this.#gone([id])).length > 0) await this.forget(id)
      return answer
    }
    throw new SluiceError('CONFLICT', `Other processes keep changing the breaker of endpoint ${id}. Try again.`)
  }

  async #read(id: string): Promise<{ readonly breaker: Breaker; readonly rev: number }> {
    const store = await this.#store()
    const [doc] = (await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })).docs
    const breaker = doc === undefined ? CLOSED : parseBreaker(doc)
    if (breaker.kind === 'closed' && breaker.failures === 0) this.#healthy.set(id, breaker)
    return { breaker, rev: doc?.rev ?? 0 }
  }
}

function parseBreaker(doc: Doc): Breaker {
  return JSON.parse(Buffer.from(doc.body).toString()) as Breaker
}
