// `TenantEndpoints` finds the endpoints of one tenant that match an event. Endpoints without globs are indexed by
// type, so only the others are tried one by one.
import type { FlowEvent } from '../model/flow-event.ts'
import type { Endpoint } from './endpoint.ts'

export interface EndpointSubscription extends Pick<Endpoint, 'id' | 'tenant' | 'eventFilter'> {
  wants(event: FlowEvent): boolean
}

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
