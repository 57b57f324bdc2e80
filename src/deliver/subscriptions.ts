// Who wants an event, in memory for whoever routes: as old as the epoch it was read at, and no event is routed by an old list
// (L18).
import type { FlowEvent } from '../model/flow-event.ts'
import { wantedBy, type Endpoint } from './endpoint.ts'
import type { EndpointDocs, KeptEndpoint } from './endpoint-docs.ts'

interface Wanting extends Pick<Endpoint, 'id' | 'tenant'> {
  wants(event: FlowEvent): boolean
}

export class Subscriptions {
  readonly #docs: EndpointDocs
  /** By tenant: there may be thousands of them with a few endpoints each, and an event is of one. */
  #wanting: ReadonlyMap<string, readonly Wanting[]> = new Map()
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
    const { addressee, tenant = '' } = event
    const all = this.#wanting.get(tenant) ?? []
    // Its sender chose it: it is not asked whether it wants it, but nothing of one tenant ever reaches another.
    if (addressee !== undefined) return all.some(({ id }) => id === addressee) ? [addressee] : []
    return all.filter((one) => one.wants(event)).map(({ id }) => id)
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
    this.#wanting = Map.groupBy(
      proven.map((one) => this.#wantingOf(one)),
      ({ tenant }) => tenant,
    )
    this.epoch = routes
  }

  #wantingOf(kept: KeptEndpoint): Wanting {
    const made = this.#made.get(kept) ?? { id: kept.id, tenant: kept.tenant, wants: wantedBy(kept) }
    this.#made.set(kept, made)
    return made
  }
}
