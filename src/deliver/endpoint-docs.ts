// `EndpointDocs` stores each endpoint as one document with an encrypted part.
import { SluiceError } from '../errors.ts'
import type { Millis } from '../clock.ts'
import type { Doc, Store, WriteDocsCall } from '../store/contract/index.ts'
import { changeDoc, parseDoc, readDoc, readDocPages, readDocsById, toDocBody } from '../store/documents.ts'
import { RecentCache, type ReaderDependencies } from './endpoint-cache.ts'
import { DISABLE_AFTER } from './health/breaker.ts'
import { SharedRead } from './shared-read.ts'
import type { EncryptedFields } from './endpoint-secrets.ts'
import type { Endpoint, NewEndpoint } from './endpoint.ts'

export interface EndpointDoc extends Omit<Endpoint, 'headers'>, EncryptedFields {}

export interface ReadResult<T> {
  readonly value: T
  readonly now: Millis
  /** The epoch of the routes; not newer than the value. */
  readonly routes: number
}

type AuditNote = WriteDocsCall['audit']

const KIND = 'endpoint'

export class EndpointDocs {
  readonly #store: () => Promise<Store>
  /** Only endpoints that are posted to. Any other is read each time, because it may just have been resumed or proven. */
  readonly #cache: RecentCache<EndpointDoc>
  /** The last read of all endpoints. When one of thousands has changed, the others are not parsed again. */
  #lastRead: ReadonlyMap<string, { readonly rev: number; readonly kept: EndpointDoc }> = new Map()

  readonly #all = new SharedRead(() => this.#readAll())

  constructor({ store, clock, knownRoutesEpoch }: ReaderDependencies) {
    this.#store = store
    this.#cache = new RecentCache(clock, knownRoutesEpoch)
  }

  /** `readCached` returns an endpoint that is no older than the newest known epoch of the routes. */
  readCached(id: string): EndpointDoc | Promise<EndpointDoc | undefined> {
    return this.#cache.get(id) ?? this.#readAndCache(id)
  }

  async #readAndCache(id: string): Promise<EndpointDoc | undefined> {
    const { value: kept, routes } = await this.read(id)
    if (kept?.active === true && kept.proof !== 'pending') this.#cache.set(id, kept, routes)
    return kept
  }

  /** `readAll` shares reads: hundreds of registrations at once would otherwise read the whole list each. */
  readAll(): Promise<ReadResult<readonly EndpointDoc[]>> {
    return this.#all.next()
  }

  async #readAll(): Promise<ReadResult<readonly EndpointDoc[]>> {
    const { value: docs, ...rest } = await this.#readDocs()
    const before = this.#lastRead
    const read = docs.map((doc) => {
      const known = before.get(doc.id)
      return [doc.id, known?.rev === doc.rev ? known : { rev: doc.rev, kept: parseEndpoint(doc) }] as const
    })
    this.#lastRead = new Map(read)
    return { value: read.map(([, { kept }]) => kept), ...rest }
  }

  /** `findMissing` returns the ids that have no document. */
  async findMissing(ids: readonly string[]): Promise<readonly string[]> {
    const there = await readDocsById(await this.#store(), KIND, ids)
    return ids.filter((id) => !there.has(id))
  }

  async read(id: string): Promise<ReadResult<EndpointDoc | undefined>> {
    const { doc, now, routes } = await readDoc(await this.#store(), KIND, id)
    return { value: doc && parseEndpoint(doc), now, routes }
  }

  /** `get` rejects with `NOT_FOUND` if the endpoint does not exist. */
  async get(id: string): Promise<EndpointDoc> {
    const { value } = await this.read(id)
    if (value === undefined) throw endpointNotFound(id)
    return value
  }

  async add(kept: EndpointDoc, audit: AuditNote): Promise<void> {
    const store = await this.#store()
    const writes = [{ kind: KIND, id: kept.id, ifRev: 0, body: toDocBody(kept) }]
    await store.writeDocs({ writes, raiseRoutes: true, audit })
  }

  /** `change` raises the epoch of the routes, so that no process uses its cached copy. */
  async change(
    id: string,
    audit: AuditNote,
    change: (kept: EndpointDoc, now: Millis) => EndpointDoc,
  ): Promise<Endpoint> {
    return toEndpoint(await this.#write(id, audit, change))
  }

  async remove(id: string, audit: AuditNote): Promise<void> {
    await this.#write(id, audit, () => undefined)
  }

  async #write<T extends EndpointDoc | undefined>(
    id: string,
    audit: AuditNote,
    change: (kept: EndpointDoc, now: Millis) => T,
  ): Promise<T> {
    const what = { kind: KIND, id, title: `endpoint ${id}`, raiseRoutes: true, audit }
    const written = changeDoc(await this.#store(), what, (doc, now) => {
      if (doc === undefined) throw endpointNotFound(id)
      const result = change(parseEndpoint(doc), now)
      return { body: result && toDocBody(result), result }
    })
    return written.finally(() => this.#cache.delete(id))
  }

  async #readDocs(): Promise<ReadResult<readonly Doc[]>> {
    const docs: Doc[] = []
    let [now, routes] = [0, Infinity]
    for await (const page of readDocPages(await this.#store(), KIND)) {
      docs.push(...page.docs)
      now = page.now
      // A change after the first page has raised the epoch, so the epoch of the first page is safe.
      routes = Math.min(routes, page.routes)
    }
    return { value: docs, now, routes }
  }
}

export function toEndpoint({ encrypted64: _encrypted, ...endpoint }: EndpointDoc): Endpoint {
  return endpoint
}

/** Every field except the encrypted ones. */
export function toFields({
  id: _id,
  createdAt: _at,
  active: _active,
  proof: _proof,
  transform: _transform,
  encrypted64: _encrypted,
  headers: _headers,
  history: _history,
  ...fields
}: EndpointDoc): Omit<NewEndpoint, 'headers'> {
  return fields
}

export function endpointNotFound(id: string): SluiceError {
  return new SluiceError('NOT_FOUND', `Endpoint ${JSON.stringify(id.slice(0, 100))} does not exist.`)
}

/** For documents that an earlier version wrote. */
const LEGACY_DEFAULTS = {
  rate: null,
  where: null,
  disableAfter: DISABLE_AFTER,
  proof: 'none',
  transform: null,
} as const

function parseEndpoint(doc: Doc): EndpointDoc {
  return { ...LEGACY_DEFAULTS, ...(parseDoc(doc) as EndpointDoc) }
}
