// Endpoints as they are kept: one document each, with a part that is sealed. Written against the revision that was read.
import { SluiceError } from '../errors.ts'
import type { Millis } from '../clock.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import { AtHand, type ReaderParts } from './at-hand.ts'
import { namesOf, type SealedPart } from './confidential.ts'
import type { Endpoint, NewEndpoint } from './endpoint.ts'

export interface KeptEndpoint extends Omit<Endpoint, 'headers'>, SealedPart {}

export interface Read<T> {
  readonly kept: T
  readonly now: Millis
  /** The epoch of the routes, no newer than what was read. */
  readonly routes: number
}

/** As the audit log has it. */
export interface Done {
  readonly by: string
  readonly what: string
}

const KIND = 'endpoint'
const PAGE = 500
const TRIES = 10

export class EndpointDocs {
  readonly #store: () => Promise<Store>
  /** Those that are posted to. Of any other it is asked each time: somebody may just have let it go. */
  readonly #atHand: AtHand<KeptEndpoint>
  /** As they were when all were last read: of thousands one has changed since, and the others are not parsed again. */
  #lastRead: ReadonlyMap<string, { readonly rev: number; readonly kept: KeptEndpoint }> = new Map()

  constructor({ store, clock, routesHeard }: ReaderParts) {
    this.#store = store
    this.#atHand = new AtHand(clock, routesHeard)
  }

  /** No older than the last word of the store. */
  async lately(id: string): Promise<KeptEndpoint | undefined> {
    const atHand = this.#atHand.get(id)
    if (atHand !== undefined) return atHand
    const { kept, routes } = await this.one(id)
    if (kept?.active === true && kept.proof !== 'pending') this.#atHand.keep(id, kept, routes)
    return kept
  }

  async all(): Promise<Read<readonly KeptEndpoint[]>> {
    const { docs, now, routes } = await this.#all()
    const before = this.#lastRead
    const read = docs.map((doc) => {
      const known = before.get(doc.id)
      return [doc.id, known?.rev === doc.rev ? known : { rev: doc.rev, kept: keptIn(doc) }] as const
    })
    this.#lastRead = new Map(read)
    return { kept: read.map(([, { kept }]) => kept), now, routes }
  }

  async count(): Promise<{ readonly count: number; readonly now: Millis }> {
    const { docs, now } = await this.#all()
    return { count: docs.length, now }
  }

  /** Those of them that are not there. */
  async gone(ids: readonly string[]): Promise<readonly string[]> {
    const store = await this.#store()
    const { docs } = await store.readDocs({ kind: KIND, ids, after: '', n: ids.length })
    const there = new Set(docs.map(({ id }) => id))
    return ids.filter((id) => !there.has(id))
  }

  async one(id: string): Promise<Read<KeptEndpoint | undefined>> {
    const { doc, now, routes } = await this.#one(id)
    return { kept: doc === undefined ? undefined : keptIn(doc), now, routes }
  }

  async add(kept: KeptEndpoint, { by, what }: Done): Promise<void> {
    const store = await this.#store()
    const writes = [{ kind: KIND, id: kept.id, ifRev: 0, body: bodyOf(kept) }]
    await store.writeDocs({ writes, raiseRoutes: true, audit: { who: by, what } })
  }

  /** Raises the routes, so that no process goes by what it has at hand. */
  async change(id: string, done: Done, change: (kept: KeptEndpoint, now: Millis) => KeptEndpoint): Promise<Endpoint> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const { doc, now } = await this.#one(id)
      if (doc === undefined) throw missing(id)
      const kept = change(keptIn(doc), now)
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: bodyOf(kept) }]
      const reply = await store.writeDocs({ writes, raiseRoutes: true, audit: { who: done.by, what: done.what } })
      this.#atHand.forget(id)
      if (reply.kind === 'written') return shown(kept)
    }
    throw tooOften(id)
  }

  async remove(id: string, { by, what }: Done): Promise<void> {
    const store = await this.#store()
    for (let tries = 0; tries < TRIES; tries++) {
      const { doc } = await this.#one(id)
      if (doc === undefined) throw missing(id)
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: undefined }]
      const reply = await store.writeDocs({ writes, raiseRoutes: true, audit: { who: by, what } })
      this.#atHand.forget(id)
      if (reply.kind === 'written') return
    }
    throw tooOften(id)
  }

  async #all(): Promise<{ readonly docs: readonly Doc[]; readonly now: Millis; readonly routes: number }> {
    const store = await this.#store()
    const docs: Doc[] = []
    let after = ''
    for (let routes: number | undefined; ;) {
      const reply = await store.readDocs({ kind: KIND, ids: undefined, after, n: PAGE })
      docs.push(...reply.docs)
      // Whoever changed them after the first page has raised it.
      routes ??= reply.routes
      if (reply.next === undefined) return { docs, now: reply.now, routes }
      after = reply.next
    }
  }

  async #one(id: string): Promise<{ readonly doc: Doc | undefined; readonly now: Millis; readonly routes: number }> {
    const store = await this.#store()
    const { docs, now, routes } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
    return { doc: docs[0], now, routes }
  }
}

export function shown({ sealed64: _sealed, headers, ...endpoint }: KeptEndpoint): Endpoint {
  return { ...endpoint, headers: namesOf(headers) }
}

/** All but what is sealed. */
export function fieldsOf({
  id: _id,
  createdAt: _at,
  active: _active,
  proof: _proof,
  sealed64: _sealed,
  headers: _headers,
  ...fields
}: KeptEndpoint): Omit<NewEndpoint, 'headers'> {
  return fields
}

export function missing(id: string): SluiceError {
  return new SluiceError('NOT_FOUND', `There is no endpoint ${JSON.stringify(id.slice(0, 100))}.`)
}

function tooOften(id: string): SluiceError {
  return new SluiceError('NOT_POSSIBLE', `Others change endpoint ${id} all the time; try again.`)
}

function keptIn(doc: Doc): KeptEndpoint {
  return { ...UNSAID_BEFORE, ...(JSON.parse(Buffer.from(doc.body).toString()) as KeptEndpoint) }
}

/** Of those that an earlier version has written. */
const UNSAID_BEFORE = { rate: null, proof: 'none' } as const

function bodyOf(kept: KeptEndpoint): Buffer {
  return Buffer.from(JSON.stringify(kept))
}
