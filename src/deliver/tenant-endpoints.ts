// The endpoints of one tenant, of which there may be thousands. Most name the types that they want, and are found by these: only the
// others are asked one by one whether they want an event.
import type { FlowEvent } from '../model/flow-event.ts'
import type { Endpoint } from './endpoint.ts'

export interface Wanting extends Pick<Endpoint, 'id' | 'tenant' | 'eventFilter'> {
  wants(event: FlowEvent): boolean
}

export class TenantEndpoints {
  readonly #ids: ReadonlySet<string>
  readonly #byName = new Map<string, Wanting[]>()
  readonly #byGlob: Wanting[] = []

  constructor(endpoints: readonly Wanting[]) {
    this.#ids = new Set(endpoints.map(({ id }) => id))
    for (const one of endpoints) {
      if (one.eventFilter.some((glob) => glob.includes('*'))) this.#byGlob.push(one)
      else for (const name of new Set(one.eventFilter)) this.#named(name).push(one)
    }
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  thatWant(event: FlowEvent): readonly string[] {
    const { source, type } = event
    const asked = [this.#byName.get(type) ?? [], this.#byName.get(`${source}/${type}`) ?? [], this.#byGlob].flat()
    const wanting = asked.filter((one) => one.wants(event)).map(({ id }) => id)
    // One may name the type, and the type of that source as well.
    return wanting.length < 2 ? wanting : [...new Set(wanting)]
  }

  #named(name: string): Wanting[] {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const made: Wanting[] = []
    this.#byName.set(name, made)
    return made
  }
}
