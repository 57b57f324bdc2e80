// `BreakerStore` keeps the breaker of each endpoint in the store, so that all processes agree. It writes only
// changes, not every POST.
import type { Millis } from '../../clock.ts'
import type { Doc } from '../../store/contract/index.ts'
import { changeDoc, parseDoc, readDoc, readDocPages, readDocsById, toDocBody } from '../../store/documents.ts'
import { RecentCache, type ReaderDependencies } from '../endpoint-cache.ts'
import type { EndpointDocs } from '../endpoint-docs.ts'
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

export interface BreakerStoreDependencies extends Pick<ReaderDependencies, 'store' | 'clock'> {
  readonly docs: Pick<EndpointDocs, 'findMissing'>
}

interface BreakerDecision<T> {
  /** Undefined removes the stored breaker. */
  readonly next: Breaker | undefined
  readonly result: T
}

export class BreakerStore {
  readonly #deps: BreakerStoreDependencies
  /** Only healthy endpoints, which are nearly all. Any other is read each time. */
  readonly #healthy: RecentCache<Breaker>

  constructor(deps: BreakerStoreDependencies) {
    this.#deps = deps
    this.#healthy = new RecentCache(deps.clock)
  }

  async get(id: string): Promise<Breaker> {
    const known = this.#healthy.get(id)
    if (known !== undefined) return known
    const { doc } = await readDoc(await this.#deps.store(), KIND, id)
    return this.#parse(id, doc)
  }

  /** `getAll` leaves out the endpoints that never failed. */
  async getAll(ids: readonly string[]): Promise<ReadonlyMap<string, Breaker>> {
    const docs = await readDocsById(await this.#deps.store(), KIND, ids)
    return new Map(Array.from(docs, ([id, doc]) => [id, parseDoc(doc) as Breaker]))
  }

  /** `disabledBefore` yields the endpoints that were disabled before `at`. */
  async *disabledBefore(at: Millis): AsyncGenerator<string> {
    for await (const { docs } of readDocPages(await this.#deps.store(), KIND)) {
      for (const doc of docs) {
        const breaker = parseDoc(doc) as Breaker
        if (breaker.kind === 'disabled' && breaker.at < at) yield doc.id
      }
    }
  }

  /** `admit` decides whether this run may post now. A probe is admitted only if the breaker has not changed meanwhile. */
  admit(id: string, run: string, now: Millis): Admission | Promise<Admission> {
    const well = this.#healthy.get(id)
    if (well !== undefined) return admit(well, run, now)
    return this.#change(id, (before) => {
      const admitted = admit(before, run, now)
      return { next: admitted.kind === 'go' ? admitted.breaker : before, result: admitted }
    })
  }

  /** `isHealthy` returns whether a successful POST changes nothing, as this process knows without a read. */
  isHealthy(id: string): boolean {
    return this.#healthy.get(id) !== undefined
  }

  /** `recordPost` returns the transition that deserves an event, if any. */
  recordPost(id: string, end: BreakerInput): Promise<BreakerTransition['event']> {
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

  async #change<T>(id: string, decide: (before: Breaker) => BreakerDecision<T>): Promise<T> {
    this.#healthy.delete(id)
    let isBegun = false
    let isWritten = false
    const what = { kind: KIND, id, title: `the breaker of endpoint ${id}` }
    const changed = changeDoc(await this.#deps.store(), what, (doc) => {
      const before = this.#parse(id, doc)
      const { next, result } = decide(before)
      isBegun = doc === undefined && next !== undefined
      isWritten = next === undefined || JSON.stringify(next) !== JSON.stringify(before)
      return isWritten ? { body: next && toDocBody(next), result } : { result }
    })
    const result = await changed.finally(() => isWritten && this.#healthy.delete(id))
    // `delete` forgets the breaker after it deletes the endpoint, so a breaker stored later is removed here.
    const isLeftOver = isBegun && isWritten && (await this.#deps.docs.findMissing([id])).length > 0
    if (isLeftOver) await this.forget(id)
    return result
  }

  #parse(id: string, doc: Doc | undefined): Breaker {
    const breaker = doc === undefined ? CLOSED : (parseDoc(doc) as Breaker)
    if (breaker.kind === 'closed' && breaker.failures === 0) this.#healthy.set(id, breaker)
    return breaker
  }
}
