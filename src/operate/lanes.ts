// What a person can do to a lane, and to a flow (L14).
import type { Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { LaneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { mustFit } from '../model/arguments.ts'
import { onlyKnown } from '../model/options.ts'
import type { AnyListener } from '../observe/events.ts'
import type { FindReply, FlowStats, LaneSteer, SteerReply, Store } from '../store/contract/index.ts'
import { laneView, type LaneView } from './lane-view.ts'
import { laneOf, lanesOf } from './name-lane.ts'

export interface OperateParts {
  readonly store: () => Promise<Store>
  readonly flows: ReadonlyMap<string, Flow>
  readonly emit: AnyListener
  /** Events that could not be routed are to be tried again. */
  readonly retried: () => void
  /** Nothing is routed to the flow any more, by any process. */
  readonly retire: (flow: string, by: string) => Promise<Retired>
}

/** `running`: a process serves it. */
export type Retired = 'ok' | 'missing' | 'running'

export type Steered = SteerReply['results'][number]

export interface Hold {
  readonly for?: Duration
  readonly reason: string
  readonly by: string
}

export interface Page<T> {
  readonly items: readonly T[]
  /** To be given as `cursor` for the page after; undefined at the end. */
  readonly next: string | undefined
}

export interface LaneFilter {
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly tenant?: string
}

/** What is done to a lane by its id. */
export type LaneAct = { readonly kind: 'run-now' | 'cancel' | 'drop' | 'unhold' } | ({ readonly kind: 'hold' } & Hold)

const FILTERS: ReadonlySet<string> = new Set(['flow', 'tenant'])

export class Lanes {
  readonly #parts: OperateParts

  constructor(parts: OperateParts) {
    this.#parts = parts
  }

  async get(flow: string, key: string): Promise<Lane | undefined> {
    const store = await this.#parts.store()
    return (await store.get({ kind: 'lanes', id: laneOf(this.#parts.flows, flow, key) })).item
  }

  async list(
    filter: { readonly flow?: string; readonly tenant?: string } = {},
    cursor = '',
    n = 100,
  ): Promise<Page<Lane>> {
    onlyKnown(filter, FILTERS, 'lanes: ')
    const store = await this.#parts.store()
    const { items, next } = await store.find({ kind: 'lanes', filter, cursor, n })
    return { items, next }
  }

  /** As `list`, in words for people. */
  async search(filter: LaneFilter = {}, cursor = '', n = 100): Promise<Page<LaneView>> {
    const { flow, key, tenant } = filter
    const store = await this.#parts.store()
    if (key === undefined) {
      const { items, next, now } = await store.find({ kind: 'lanes', filter, cursor, n })
      return { items: items.map((lane) => laneView(lane, now)), next }
    }
    if (flow === undefined) throw new SluiceError('CONFIG_INVALID', 'lanes: key comes with the flow it is a key of.')
    const found = await Promise.all(lanesOf(this.#parts.flows, flow, key).map((id) => this.show(id)))
    const items = found.filter((lane) => lane !== undefined && (tenant === undefined || lane.tenant === tenant))
    return { items: items as readonly LaneView[], next: undefined }
  }

  /** By its id: keys can be 16 KB of anything. */
  async show(id: LaneId): Promise<LaneView | undefined> {
    const store = await this.#parts.store()
    const { item, now } = await store.get({ kind: 'lanes', id })
    return item === undefined ? undefined : laneView(item, now)
  }

  /** As the members below, by the lane's id. */
  async steer(id: LaneId, act: LaneAct): Promise<Steered> {
    const store = await this.#parts.store()
    if (act.kind !== 'hold') return this.#steer(id, { kind: act.kind })
    const { item } = await store.get({ kind: 'lanes', id })
    return item === undefined ? 'missing' : this.#hold(item, act)
  }

  /** Its window is over, and so is its wait for another attempt. */
  async runNow(flow: string, key: string): Promise<Steered> {
    return this.#steer(this.#named(flow, key), { kind: 'run-now' })
  }

  /** Asks its run to give up; the events wait again. */
  async cancel(flow: string, key: string): Promise<Steered> {
    return this.#steer(this.#named(flow, key), { kind: 'cancel' })
  }

  /** What waits in it ends here, without a run. */
  async drop(flow: string, key: string): Promise<Steered> {
    return this.#steer(this.#named(flow, key), { kind: 'drop' })
  }

  async hold(flow: string, key: string, hold: Hold): Promise<Steered> {
    return this.#hold({ id: this.#named(flow, key), flow, key }, hold)
  }

  async unhold(flow: string, key: string): Promise<Steered> {
    return this.#steer(this.#named(flow, key), { kind: 'unhold' })
  }

  async #hold({ id, flow, key }: Pick<Lane, 'id' | 'flow' | 'key'>, hold: Hold): Promise<Steered> {
    mustFit([hold], { hold: { reason: 'text', by: 'text' } }, 'lanes.hold: ')
    const { reason, by } = hold
    const answer = await this.#steer(id, { kind: 'hold', reason, by, for: holdFor(hold) })
    if (answer === 'ok') this.#parts.emit('lane.held', { flow, key, reason, by })
    return answer
  }

  #named(flow: string, key: string): LaneId {
    return laneOf(this.#parts.flows, flow, key)
  }

  async #steer(id: LaneId, act: LaneSteer): Promise<Steered> {
    const store = await this.#parts.store()
    return (await store.steer({ what: 'lanes', ids: [id], act })).results[0] ?? 'missing'
  }
}

function holdFor(hold: Hold): Millis {
  return millis(hold.for ?? Infinity, 'hold.for')
}

const MARKS_AT_ONCE = 200

export class Flows {
  readonly #parts: OperateParts

  constructor(parts: OperateParts) {
    this.#parts = parts
  }

  async list(): Promise<readonly FlowStats[]> {
    const store = await this.#parts.store()
    const known = (await store.stats()).flows
    const empty = [...this.#parts.flows.keys()].filter((flow) => !known.some((one) => one.flow === flow))
    return [...known, ...empty.map((flow) => ({ flow, lanes: 0, live: 0, due: undefined, paused: undefined }))]
  }

  /** Nothing of it is begun; arrivals, windows and deadlines go on. */
  async pause(flow: string, why: { readonly reason: string; readonly by: string }): Promise<Steered> {
    const store = await this.#parts.store()
    if (!(await this.#isKnown(store, flow))) return 'missing'
    const { results } = await store.steer({ what: 'flows', ids: [flow], act: { kind: 'pause', ...why } })
    if (results[0] === 'ok') this.#parts.emit('flow.paused', { flow, ...why })
    return results[0] ?? 'missing'
  }

  /** Declared here, or with lanes in the store: another process may serve it. */
  async #isKnown(store: Store, flow: string): Promise<boolean> {
    if (this.#parts.flows.has(flow)) return true
    const { docs } = await store.readDocs({ kind: 'flow', ids: [flow], after: '', n: 1 })
    return docs.length > 0 || (await store.stats()).flows.some((one) => one.flow === flow)
  }

  /** For one that is gone for good: no event is kept for it any more, and those that were are let go. */
  async retire(flow: string, by = ''): Promise<Retired> {
    const retired = await this.#parts.retire(flow, by)
    if (retired !== 'running') await this.#endMarks(flow)
    return retired
  }

  async #endMarks(flow: string): Promise<void> {
    const store = await this.#parts.store()
    let cursor: string | undefined = ''
    while (cursor !== undefined) {
      const page: FindReply<'marks'> = await store.find({ kind: 'marks', filter: { flow }, cursor, n: MARKS_AT_ONCE })
      const ids = page.items.map(({ id }) => id)
      if (ids.length > 0) await store.steer({ what: 'marks', ids, act: 'drop' })
      cursor = page.next
    }
  }

  async resume(flow: string, by = ''): Promise<Steered> {
    const store = await this.#parts.store()
    const { results } = await store.steer({ what: 'flows', ids: [flow], act: { kind: 'resume' } })
    if (results[0] === 'ok') this.#parts.emit('flow.resumed', { flow, by })
    if (results[0] === 'already' && !(await this.#isKnown(store, flow))) return 'missing'
    return results[0] ?? 'missing'
  }
}
