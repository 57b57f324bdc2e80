// `EndpointDocs` stores each endpoint as one document with an encrypted part. Each write names the revision that was
// read.
import { SluiceError } from '../errors.ts'
import type { Millis } from '../clock.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import { RecentCache, type ReaderDependencies } from './endpoint-cache.ts'
import type { EncryptedFields } from './endpoint-secrets.ts'
import type { Endpoint, NewEndpoint } from './endpoint.ts'

export interface EndpointDoc extends Omit<Endpoint, 'headers'>, EncryptedFields {}

export interface ReadResult<T> {
  readonly value: T
  readonly now: Millis
  /** The epoch of the routes; not newer than the value. */
  readonly routes: number
}

/** An entry of the audit log. */
export interface AuditNote {
  readonly by: string
  readonly what: string
}

const KIND = 'endpoint'
const PAGE = 500
const TRIES = 10

export class EndpointDocs {
  readonly #store: () => Promise<Store>
  /**
   * Only endpoints that are posted to. Any other is read each time, because it may just have been resumed or proven.
   */
  readonly #cache: RecentCache<EndpointDoc>
  /** The last read of all endpoints. When one of thousands has changed, the others are not parsed again. */
  #lastRead: ReadonlyMap<string, { readonly rev: number; readonly kept: EndpointDoc }> = new Map()

  constructor({ store, clock, knownRoutesEpoch: routesHeard }: ReaderDependencies) {
    this.#store = store
    this.#cache = new RecentCache(clock, routesHeard)
  }

  /** `readCached` returns an endpoint that is no older than the newest known epoch of the routes. */
  async readCached(id: string): Promise<EndpointDoc | undefined> {
    const cached = this.#cache.get(id)
    if (cached !== undefined) return cached
    const { value: kept, routes } = await this.read(id)
    if (kept?.active === true && kept.proof !== 'pending') this.#cache.set(id, kept, routes)
    return kept
  }

  async readAll(): Promise<ReadResult<readonly EndpointDoc[]>> {
    const { docs, now, routes } = await this.#readDocs()
    const before = this.#lastRead
    const read = docs.map((doc) => {
      const known = before.get(doc.id)
      return [doc.id, known?.rev === doc.rev ? known : { rev: doc.rev, kept: parseEndpoint(doc) }] as const
    })
    this.#lastRead = new Map(read)
    return { value: read.map(([, { kept }]) => kept), now, routes }
  }

  async count(): Promise<{ readonly count: number; readonly now: Millis }> {
    const { docs, now } = await this.#readDocs()
    return { count: docs.length, now }
  }

  /** `findMissing` returns the ids that have no document. */
  async findMissing(ids: readonly string[]): Promise<readonly string[]> {
    const store = await this.#store()
    const { docs } = await store.readDocs({ kind: KIND, ids, after: '', n: ids.length })
    const there = new Set(docs.map(({ id }) => id))
    return ids.filter((id) => !there.has(id))
  }

  async read(id: string): Promise<ReadResult<EndpointDoc | undefined>> {
    const { doc, now, routes } = await this.#readDoc(id)
    return { value: doc === undefined ? undefined : parseEndpoint(doc), now, routes }
  }

  async add(kept: EndpointDoc, { by, what }: AuditNote): Promise<void> {
    const store = await this.#store()
    const writes = [{ kind: KIND, id: kept.id, ifRev: 0, body: serializeEndpoint(kept) }]
    await store.writeDocs({ writes, raiseRoutes: true, audit: { who: by, what } })
  }

  /** `change` raises the epoch of the routes, so that no process uses its cached copy. */
  async change(
    id: string,
    done: AuditNote,
    change: (kept: EndpointDoc, now: Millis) => EndpointDoc,
  ): Promise<Endpoint> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const { doc, now } = await this.#readDoc(id)
      if (doc === undefined) throw endpointNotFound(id)
      const kept = change(parseEndpoint(doc), now)
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: serializeEndpoint(kept) }]
      const reply = await store.writeDocs({ writes, raiseRoutes: true, audit: { who: done.by, what: done.what } })
      this.#cache.delete(id)
      if (reply.kind === 'written') return toEndpoint(kept)
    }
    throw tooManyConflicts(id)
  }

  async remove(id: string, { by, what }: AuditNote): Promise<void> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const { doc } = await this.#readDoc(id)
      if (doc === undefined) throw endpointNotFound(id)
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: undefined }]
      const reply = await store.writeDocs({ writes, raiseRoutes: true, audit: { who: by, what } })
      this.#cache.delete(id)
      if (reply.kind === 'written') return
    }
    throw tooManyConflicts(id)
  }

  async #readDocs(): Promise<{ readonly docs: readonly Doc[]; readonly now: Millis; readonly routes: number }> {
    const store = await this.#store()
    const docs: Doc[] = []
    let after = ''
    for (let routes: number | undefined; ;) {
      const reply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      docs.push(...reply.docs)
      // A change after the first page has raised the epoch, so the epoch of the first page is safe.
      routes ??= reply.routes
      if (reply.next === undefined) return { docs, now: reply.now, routes }
      after = reply.next
    }
  }

  async #readDoc(
    id: string,
  ): Promise<{ readonly doc: Doc | undefined; readonly now: Millis; readonly routes: number }> {
    const store = await this.#store()
    const { docs, now, routes } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
    return { doc: docs[0], now, routes }
  }
}

export function toEndpoint({ sealed64: _sealed, ...endpoint }: EndpointDoc): Endpoint {
  return endpoint
}

/** Every field except the encrypted ones. */
export function toFields({
  id: _id,
  createdAt: _at,
  active: _active,
  proof: _proof,
  sealed64: _sealed,
  headers: _headers,
  ...fields
}: EndpointDoc): Omit<NewEndpoint, 'headers'> {
  return fields
}

export function endpointNotFound(id: string): SluiceError {
  return new SluiceError('NOT_FOUND', `Endpoint ${JSON.stringify(id.slice(0, 100))} does not exist.`)
}

function tooManyConflicts(id: string): SluiceError {
  return new SluiceError('CONFLICT', `Other processes keep changing endpoint ${id}. Try again.`)
}

function parseEndpoint(doc: Doc): EndpointDoc {
  return { ...LEGACY_DEFAULTS, ...(JSON.parse(Buffer.from(doc.body).toString()) as EndpointDoc) }
}

/** For documents that an earlier version wrote. */
const LEGACY_DEFAULTS = { rate: null, proof: 'none' } as const

function serializeEndpoint(kept: EndpointDoc): Buffer {
  return Buffer.from(JSON.stringify(kept))
}
