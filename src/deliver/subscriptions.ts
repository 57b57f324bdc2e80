// `Subscriptions` keeps in memory which endpoints want an event. The list has the epoch at which it was read, and no
// event is routed by an old list (L18).
import type { FlowEvent } from '../model/flow-event.ts'
import { createEventMatcher, type Endpoint } from './endpoint.ts'
import type { EndpointDocs, EndpointDoc } from './endpoint-docs.ts'
import { SharedRead } from './shared-read.ts'

const MAX_REMEMBERED_BODY = 65_536

export class Subscriptions {
  readonly #docs: EndpointDocs
  /** By tenant, because thousands of tenants may have a few endpoints each. */
  #tenants: ReadonlyMap<string, TenantEndpoints> = new Map()
  #sentHistory: ReadonlySet<string> = new Set()
  /** The result for the last event, because each delivery asks twice: whether any endpoint matches, and which ones. */
  #lastMatch: { readonly event: FlowEvent; readonly ids: readonly string[] } | undefined
  /** The parsed form of a document lives as long as the cached document. */
  readonly #parsed = new WeakMap<EndpointDoc, EndpointSubscription>()
  /** The epoch of the routes at which the list was read. */
  epoch = 0
  readonly #refreshes = new SharedRead(() => this.#read())

  constructor(docs: EndpointDocs) {
    this.#docs = docs
  }

  /** The endpoints that are still sent their history, behind which their live events wait. */
  get sentHistory(): ReadonlySet<string> {
    return this.#sentHistory
  }

  matching(event: FlowEvent): readonly string[] {
    // The cache keeps its event alive, so events with a large body are not cached.
    if (event.body.length > MAX_REMEMBERED_BODY) return this.#findMatching(event)
    if (this.#lastMatch?.event !== event) this.#lastMatch = { event, ids: this.#findMatching(event) }
    return this.#lastMatch.ids
  }

  #findMatching(event: FlowEvent): readonly string[] {
    const { targetEndpoint: addressee, tenant = '' } = event
    const endpoints = this.#tenants.get(tenant)
    if (endpoints === undefined) return []
    // The publisher chose this endpoint, so its filter does not count. Its tenant still does.
    if (addressee !== undefined) return endpoints.has(addressee) ? [addressee] : []
    return endpoints.matching(event)
  }

  /** `refresh` reads the list again. Calls during a read share the next one, which starts after their changes. */
  refresh(): Promise<void> {
    return this.#refreshes.next()
  }

  async #read(): Promise<void> {
    const { value: kept, routes } = await this.#docs.readAll()
    const proven = kept.filter(({ proof }) => proof !== 'pending')
    const byTenant = Map.groupBy(
      proven.map((one) => this.#toSubscription(one)),
      ({ tenant }) => tenant,
    )
    this.#tenants = new Map(Array.from(byTenant, ([tenant, endpoints]) => [tenant, new TenantEndpoints(endpoints)]))
    this.#sentHistory = new Set(proven.filter(({ history }) => history !== undefined).map(({ id }) => id))
    this.#lastMatch = undefined
    this.epoch = routes
  }

  #toSubscription(kept: EndpointDoc): EndpointSubscription {
    const { id, tenant, eventFilter } = kept
    const made = this.#parsed.get(kept) ?? { id, tenant, eventFilter, wants: createEventMatcher(kept) }
    this.#parsed.set(kept, made)
    return made
  }
}

interface EndpointSubscription extends Pick<Endpoint, 'id' | 'tenant' | 'eventFilter'> {
  wants(event: FlowEvent): boolean
}

/**
 * `TenantEndpoints` finds the endpoints of one tenant that match an event. Endpoints without globs are indexed by type, so
 * only the others are tried one by one.
 */
export class TenantEndpoints {
  readonly #ids: ReadonlySet<string>
  readonly #byName = new Map<string, EndpointSubscription[]>()
  readonly #byGlob: EndpointSubscription[] = []

  constructor(endpoints: readonly EndpointSubscription[]) {
    this.#ids = new Set(endpoints.map(({ id }) => id))
    for (const one of endpoints) {
      if (one.eventFilter.some((glob) => glob.includes('*'))) this.#byGlob.push(one)
      else for (const name of new Set(one.eventFilter)) this.#listFor(name).push(one)
    }
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  matching(event: FlowEvent): readonly string[] {
    const { source, type } = event
    const candidates = [this.#byName.get(type) ?? [], this.#byName.get(`${source}/${type}`) ?? [], this.#byGlob].flat()
    const wanting = candidates.filter((one) => one.wants(event)).map(({ id }) => id)
    // An endpoint may name both `type` and `source/type`.
    return wanting.length < 2 ? wanting : [...new Set(wanting)]
  }

  #listFor(name: string): EndpointSubscription[] {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const made: EndpointSubscription[] = []
    this.#byName.set(name, made)
    return made
  }
}
