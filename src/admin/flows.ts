// `Flows` is what operators see of flows and do to one (L14).
import { OWN_SOURCES } from '../model/event.ts'
import type { FlowStats, Store } from '../store/contract/index.ts'
import type { OperatorDependencies, RetireResult, SteerResult } from './lanes.ts'
import { findPages } from './pages.ts'

const UNROUTED_BATCH = 200

function isOwnFlow({ flow }: FlowStats): boolean {
  return flow.startsWith(OWN_SOURCES)
}

export class Flows {
  readonly #deps: OperatorDependencies

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
  }

  async list(): Promise<readonly FlowStats[]> {
    const store = await this.#deps.store()
    const known = (await store.stats()).flows
    const empty = [...this.#deps.flows.keys()].filter((flow) => !known.some((one) => one.flow === flow))
    const all = [...known, ...empty.map((flow) => ({ flow, lanes: 0, live: 0, due: undefined, paused: undefined }))]
    // The flows of the engine come last.
    return all.toSorted((one, other) => Number(isOwnFlow(one)) - Number(isOwnFlow(other)))
  }

  /** `pause` stops claiming the flow. Arrivals, windows and deadlines continue. */
  async pause(flow: string, why: { readonly reason: string; readonly by: string }): Promise<SteerResult> {
    const store = await this.#deps.store()
    if (!(await this.#isKnown(store, flow))) return 'missing'
    const { results } = await store.steer({ what: 'flows', ids: [flow], act: { kind: 'pause', ...why } })
    if (results[0] === 'ok') this.#deps.emit('flow.paused', { flow, ...why })
    return results[0] ?? 'missing'
  }

  /** A flow is known if this app declares it or the store has it, because another process may serve it. */
  async #isKnown(store: Store, flow: string): Promise<boolean> {
    if (this.#deps.flows.has(flow)) return true
    const { docs } = await store.readDocs({ kind: 'flow', ids: [flow], after: '', n: 1 })
    return docs.length > 0 || (await store.stats()).flows.some((one) => one.flow === flow)
  }

  /** `retire` is for a flow that will not come back: Sluice stores no more events for it and drops its unrouted ones. */
  async retire(flow: string, by = ''): Promise<RetireResult> {
    const retired = await this.#deps.retireFlow(flow, by)
    if (retired !== 'running') await this.#dropUnrouted(flow)
    return retired
  }

  async #dropUnrouted(flow: string): Promise<void> {
    const store = await this.#deps.store()
    for await (const page of findPages(store, { kind: 'unrouted', filter: { flow }, n: UNROUTED_BATCH })) {
      const ids = page.map(({ id }) => id)
      if (ids.length > 0) await store.steer({ what: 'unrouted', ids, act: 'drop' })
    }
  }

  async resume(flow: string, by = ''): Promise<SteerResult> {
    const store = await this.#deps.store()
    const { results } = await store.steer({ what: 'flows', ids: [flow], act: { kind: 'resume' } })
    if (results[0] === 'ok') this.#deps.emit('flow.resumed', { flow, by })
    if (results[0] === 'already' && !(await this.#isKnown(store, flow))) return 'missing'
    return results[0] ?? 'missing'
  }
}
