// Subscribers in the store, and in memory for whoever routes. A change of who gets what raises the epoch of the routes: no
// event is routed by an old list (L18).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Seal } from '../seal.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import type { GuardRules } from './addresses.ts'
import { deliveriesTo, type DeliveryRecord } from './deliveries.ts'
import { endpointFields, wantedBy, type Endpoint, type EndpointChange, type NewEndpoint } from './endpoint.ts'
import {
  activeSecrets,
  firstSecret,
  newSecret,
  openSecrets,
  rotated,
  sealSecrets,
  type EndpointSecrets,
} from './secrets.ts'

export interface EndpointsParts {
  readonly store: () => Promise<Store>
  readonly seal: Seal
  readonly rules: GuardRules
  /** What waits for it is due, held or dropped; the number of events that were. */
  readonly lanes: {
    hold(id: string, reason: string, by: string): Promise<void>
    letGo(id: string): Promise<void>
    drop(id: string): Promise<number>
    /** Of all endpoints: those whose window is open are due. How many. */
    runAll(): Promise<number>
  }
  /** The names of all deliveries. */
  readonly deliveries: () => readonly string[]
}

/** Its secret is shown now, and never again. */
export type AddedEndpoint = Endpoint & { readonly secret: string }

/** An endpoint as its deliveries need it. */
export interface Addressed {
  readonly endpoint: Endpoint
  /** The newest first. */
  readonly secrets: readonly string[]
}

interface Kept extends Endpoint {
  readonly sealed64: string
}

interface Wanting {
  readonly id: string
  wants(event: FlowEvent): boolean
}

const KIND = 'endpoint'
const PAGE = 500
const MOST = 10_000
const TRIES = 10

export class Endpoints {
  readonly #parts: EndpointsParts
  #wanting: readonly Wanting[] = []
  /** Of the routes, when the list above was read. */
  epoch = 0

  constructor(parts: EndpointsParts) {
    this.#parts = parts
  }

  async add(given: NewEndpoint, by = ''): Promise<AddedEndpoint> {
    const { seal, rules } = this.#parts
    if (!seal.hasKey) throw new SluiceError('NOT_POSSIBLE', 'Secrets are kept sealed: give the app a key first.')
    const secret = given?.secret ?? newSecret()
    const fields = endpointFields(given, secret, rules)
    const store = await this.#parts.store()
    const { docs, now } = await read(store)
    if (docs.length >= MOST) throw new SluiceError('ENDPOINT_INVALID', `endpoint: there are ${MOST}; remove one first.`)
    const id = `ep_${randomBytes(9).toString('base64url')}`
    const endpoint: Endpoint = { id, ...fields, createdAt: now, active: true }
    const sealed64 = sealSecrets(seal, firstSecret(secret, now), ownerOf(endpoint)).toString('base64')
    const writes = [{ kind: KIND, id, ifRev: 0, body: bodyOf({ ...endpoint, sealed64 }) }]
    await store.writeDocs({ writes, raiseRoutes: true, audit: { who: by, what: `added endpoint ${id}` } })
    await this.refresh()
    return { ...endpoint, secret }
  }

  /** The oldest first. */
  async list(): Promise<readonly Endpoint[]> {
    const { docs } = await read(await this.#parts.store())
    return docs.map((doc) => shown(keptIn(doc))).toSorted((one, other) => one.createdAt - other.createdAt)
  }

  async get(id: string): Promise<Endpoint | undefined> {
    const doc = await this.#doc(id)
    return doc === undefined ? undefined : shown(keptIn(doc))
  }

  /** What is not named stays as it is. */
  async change(id: string, change: EndpointChange, by = ''): Promise<Endpoint> {
    const { rules } = this.#parts
    const changed = await this.#changed(id, `changed endpoint ${id}`, by, (kept, now) => {
      const { id: _id, createdAt, active, sealed64, ...before } = kept
      if ('tenant' in change) throw new SluiceError('ENDPOINT_INVALID', 'endpoint: tenant is for good; add another.')
      const [secret = ''] = activeSecrets(this.#secretsOf(kept), now)
      return { ...endpointFields({ ...before, ...change }, secret, rules), id, createdAt, active, sealed64 }
    })
    await this.refresh()
    return changed
  }

  /** Its events wait. */
  async pause(id: string, by = ''): Promise<Endpoint> {
    const endpoint = await this.#changed(id, `paused endpoint ${id}`, by, (kept) => ({ ...kept, active: false }))
    await this.#parts.lanes.hold(id, PAUSED, by)
    return endpoint
  }

  /** What waits is due at once. */
  async resume(id: string, by = ''): Promise<Endpoint> {
    const endpoint = await this.#changed(id, `resumed endpoint ${id}`, by, (kept) => ({ ...kept, active: true }))
    await this.#parts.lanes.letGo(id)
    return endpoint
  }

  /** Both the new one and the one before sign for a day. `force` ends a rotation that is under way. */
  async rotateSecret(
    id: string,
    { secret = newSecret(), force = false, by = '' }: Partial<Rotation> = {},
  ): Promise<AddedEndpoint> {
    const endpoint = await this.#changed(id, `rotated the secret of endpoint ${id}`, by, (kept, now) => {
      endpointFields({ ...fieldsOf(kept), secret }, secret, this.#parts.rules)
      const next = rotated(this.#secretsOf(kept), secret, now, force)
      if (next.kind === 'rotating') {
        const until = new Date(next.until).toISOString()
        throw new SluiceError('NOT_POSSIBLE', `The secret before the last signs until ${until}; use force to end that.`)
      }
      return { ...kept, sealed64: sealSecrets(this.#parts.seal, next.secrets, ownerOf(kept)).toString('base64') }
    })
    return { ...endpoint, secret }
  }

  /** What waits for it is dropped; how many events that were. */
  async remove(id: string, by = ''): Promise<{ readonly dropped: number }> {
    const store = await this.#parts.store()
    for (let tries = 0; tries < TRIES; tries++) {
      const doc = await this.#doc(id)
      if (doc === undefined) throw missing(id)
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: undefined }]
      const audit = { who: by, what: `removed endpoint ${id}` }
      if ((await store.writeDocs({ writes, raiseRoutes: true, audit })).kind === 'conflict') continue
      await this.refresh()
      return { dropped: await this.#parts.lanes.drop(id) }
    }
    throw new SluiceError('NOT_POSSIBLE', `Others change endpoint ${id} all the time; try again.`)
  }

  /** Every open window is over; what waits for another try, or is paused, waits on. How many batches that makes due. */
  async trigger(): Promise<{ readonly triggered: number }> {
    return { triggered: await this.#parts.lanes.runAll() }
  }

  /** What is under way, then what has ended, the newest first. */
  async deliveries(id: string, n = 100): Promise<readonly DeliveryRecord[]> {
    if ((await this.get(id)) === undefined) throw missing(id)
    return deliveriesTo(id, this.#parts.deliveries(), n, await this.#parts.store())
  }

  /** Whose event it is, for whoever routes. */
  wanting(event: FlowEvent): readonly string[] {
    return this.#wanting.filter((one) => one.wants(event)).map(({ id }) => id)
  }

  async refresh(): Promise<void> {
    const { docs, routes } = await read(await this.#parts.store())
    this.#wanting = docs.map((doc) => ({ id: doc.id, wants: wantedBy(keptIn(doc)) }))
    this.epoch = routes
  }

  /** As it is now, for one delivery. */
  async addressed(id: string): Promise<Addressed | undefined> {
    const store = await this.#parts.store()
    const { docs, now } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
    const [doc] = docs
    if (doc === undefined) return undefined
    const kept = keptIn(doc)
    return { endpoint: shown(kept), secrets: activeSecrets(this.#secretsOf(kept), now) }
  }

  #secretsOf(kept: Kept): EndpointSecrets {
    return openSecrets(this.#parts.seal, Buffer.from(kept.sealed64, 'base64'), ownerOf(kept))
  }

  async #doc(id: string): Promise<Doc | undefined> {
    const store = await this.#parts.store()
    return (await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })).docs[0]
  }

  async #changed(id: string, what: string, by: string, change: (kept: Kept, now: Millis) => Kept): Promise<Endpoint> {
    const store = await this.#parts.store()
    for (let tries = 0; tries < TRIES; tries++) {
      const { docs, now } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
      const [doc] = docs
      if (doc === undefined) throw missing(id)
      const before = keptIn(doc)
      const kept = change(before, now)
      const raiseRoutes = JSON.stringify(before.eventFilter) !== JSON.stringify(kept.eventFilter)
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: bodyOf(kept) }]
      const reply = await store.writeDocs({ writes, raiseRoutes, audit: { who: by, what } })
      if (reply.kind === 'written') return shown(kept)
    }
    throw new SluiceError('NOT_POSSIBLE', `Others change endpoint ${id} all the time; try again.`)
  }
}

export const PAUSED = 'The endpoint is paused.'

export interface Rotation {
  readonly secret: string
  readonly force: boolean
  readonly by: string
}

async function read(
  store: Store,
): Promise<{ readonly docs: readonly Doc[]; readonly now: Millis; readonly routes: number }> {
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

function shown({ sealed64: _sealed, ...endpoint }: Kept): Endpoint {
  return endpoint
}

function fieldsOf({ id: _id, createdAt: _at, active: _active, sealed64: _sealed, ...fields }: Kept): NewEndpoint {
  return fields
}

function ownerOf({ id, tenant }: Endpoint): { readonly endpoint: string; readonly tenant: string } {
  return { endpoint: id, tenant }
}

function keptIn(doc: Doc): Kept {
  return JSON.parse(Buffer.from(doc.body).toString()) as Kept
}

function bodyOf(kept: Kept): Buffer {
  return Buffer.from(JSON.stringify(kept))
}

function missing(id: string): SluiceError {
  return new SluiceError('NOT_FOUND', `There is no endpoint ${JSON.stringify(id.slice(0, 100))}.`)
}
