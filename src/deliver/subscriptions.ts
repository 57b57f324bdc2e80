// Who wants an event, in memory for whoever routes: as old as the epoch it was read at, and no event is routed by an old list
// (L18).
import type { FlowEvent } from '../model/flow-event.ts'
import { wantedBy } from './endpoint.ts'
import type { EndpointDocs, KeptEndpoint } from './endpoint-docs.ts'
import { TenantEndpoints, type Wanting } from './tenant-endpoints.ts'

const REMEMBERED_BODY = 65_536

export class Subscriptions {
  readonly #docs: EndpointDocs
  /** By tenant: there may be thousands of them with a few endpoints each, and an event is of one. */
  #tenants: ReadonlyMap<string, TenantEndpoints> = new Map()
  /** A delivery asks whether anybody wants an event, and then who does; so does the next one. */
  #latest: { readonly event: FlowEvent; readonly ids: readonly string[] } | undefined
  /** As long as the document is at hand, so is what was made of it. */
  readonly #made = new WeakMap<KeptEndpoint, Wanting>()
  /** Of the routes, when the list above was read. */
  epoch = 0
  #reading: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(docs: EndpointDocs) {
    this.#docs = docs
  }

  of(event: FlowEvent): readonly string[] {
    // What is remembered is kept alive with its body.
    if (event.body.length > REMEMBERED_BODY) return this.#found(event)
    if (this.#latest?.event !== event) this.#latest = { event, ids: this.#found(event) }
    return this.#latest.ids
  }

  #found(event: FlowEvent): readonly string[] {
    const { addressee, tenant = '' } = event
    const endpoints = this.#tenants.get(tenant)
    if (endpoints === undefined) return []
    // Its sender chose it: it is not asked whether it wants it, but nothing of one tenant ever reaches another.
    if (addressee !== undefined) return endpoints.has(addressee) ? [addressee] : []
    return endpoints.thatWant(event)
  }

  /** Whoever asks while it is being read shares the next reading: one that begins after what they know of. */
  refresh(): Promise<void> {
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined
      const reading = this.#read()
      this.#reading = reading.catch(() => {})
      return reading
    })
    return this.#next
  }

  async #read(): Promise<void> {
    const { kept, routes } = await this.#docs.all()
    const proven = kept.filter(({ proof }) => proof !== 'pending')
    const byTenant = Map.groupBy(
      proven.map((one) => this.#wantingOf(one)),
      ({ tenant }) => tenant,
    )
    this.#tenants = new Map(Array.from(byTenant, ([tenant, endpoints]) => [tenant, new TenantEndpoints(endpoints)]))
    this.#latest = undefined
    this.epoch = routes
  }

  #wantingOf(kept: KeptEndpoint): Wanting {
    const { id, tenant, eventFilter } = kept
    const made = this.#made.get(kept) ?? { id, tenant, eventFilter, wants: wantedBy(kept) }
    this.#made.set(kept, made)
    return made
  }
}
