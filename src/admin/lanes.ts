// `Lanes` and `Flows` are what operators do to a lane and to a flow (L14).
import type { Millis } from '../clock.ts'
import type { Endpoints } from '../deliver/endpoints.ts'
import type { Flow } from '../model/flow.ts'
import type { LaneId } from '../model/identity.ts'
import { isHeldBack, type Lane } from '../model/lane.ts'
import { SluiceError } from '../errors.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertArguments, assertKnownOptions } from '../validate/options.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { FlowStats, LaneAction, PurgeTarget, SteerReply, Store } from '../store/contract/index.ts'
import { possibleLaneIds, resolveLaneId, toLaneView, type LaneView } from './lane-view.ts'
import { findPages, type Page } from './pages.ts'

export interface OperatorDependencies {
  readonly store: () => Promise<Store>
  readonly flows: ReadonlyMap<string, Flow>
  readonly emit: AnyListener
  /** Makes Sluice route the unrouted events again. */
  readonly retryUnrouted: () => void
  /** Ends routing to the flow in every process. */
  readonly retireFlow: (flow: string, by: string) => Promise<RetireResult>
  readonly deliveries: () => DeliveryAdmin
}

/** What deliveries keep about lanes that operators act on. */
interface DeliveryAdmin {
  readonly endpoints: Pick<Endpoints, 'list'>
  /** Called before a purge, because stored responses of endpoints may echo the purged events. */
  purgeAnswers(what: PurgeTarget): Promise<void>
  /** Called once per lane after dead letters were retried, because that means that the endpoint is repaired. */
  retried(lanes: readonly { readonly flow: string; readonly key: string }[]): Promise<void>
}

/** `running` means that a process still serves the flow. */
export type RetireResult = 'ok' | 'missing' | 'running'

export type SteerResult = SteerReply['results'][number]

export interface HoldOptions {
  readonly for?: Duration
  readonly reason: string
  readonly by: string
}

export interface LaneFilter {
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly tenant?: string
}

/** An action on a lane that is named by its id. */
export type OperatorLaneAction =
  | { readonly kind: 'run-now' | 'cancel' | 'drop' | 'unhold' }
  | ({ readonly kind: 'hold' } & HoldOptions)

export class Lanes {
  readonly #deps: OperatorDependencies

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
  }

  async get(flow: string, key: string): Promise<Lane | undefined> {
    const store = await this.#deps.store()
    return (await store.get({ kind: 'lanes', id: resolveLaneId(this.#deps.flows, flow, key) })).item
  }

  async list(
    filter: { readonly flow?: string; readonly tenant?: string } = {},
    cursor = '',
    n = 100,
  ): Promise<Page<Lane>> {
    assertKnownOptions(filter, ['flow', 'tenant'], 'lanes: ')
    const store = await this.#deps.store()
    const { items, next } = await store.find({ kind: 'lanes', filter, cursor, n })
    return { items, next }
  }

  /** `search` is `list` with the fields formatted for people. */
  async search(filter: LaneFilter = {}, cursor = '', n = 100): Promise<Page<LaneView>> {
    const { flow, key, tenant } = filter
    const store = await this.#deps.store()
    if (key === undefined) {
      const { items, next, now } = await store.find({ kind: 'lanes', filter, cursor, n })
      return { items: items.map((lane) => toLaneView(lane, now)), next }
    }
    if (flow === undefined) throw new SluiceError('CONFIG_INVALID', 'lanes: key must be used together with flow.')
    const found = await Promise.all(possibleLaneIds(this.#deps.flows, flow, key).map((id) => this.show(id)))
    const items = found.filter((lane) => lane !== undefined && (tenant === undefined || lane.tenant === tenant))
    return { items: items as readonly LaneView[], next: undefined }
  }

  /** `show` takes the id, because a key can be 16 KB of any text. */
  async show(id: LaneId): Promise<LaneView | undefined> {
    const store = await this.#deps.store()
    const { item, now } = await store.get({ kind: 'lanes', id })
    return item === undefined ? undefined : toLaneView(item, now)
  }

  /** `steer` does what the members below do, by the id of the lane. */
  async steer(id: LaneId, act: OperatorLaneAction): Promise<SteerResult> {
    const store = await this.#deps.store()
    if (act.kind !== 'hold') return this.#steer(id, { kind: act.kind })
    const { item } = await store.get({ kind: 'lanes', id })
    return item === undefined ? 'missing' : this.#hold(item, act)
  }

  /** `runNow` ends the window of the lane, or its wait for the next attempt. */
  async runNow(flow: string, key: string): Promise<SteerResult> {
    return this.#steer(this.#laneId(flow, key), { kind: 'run-now' })
  }

  /** `cancel` asks the run to cancel. Its events wait again. */
  async cancel(flow: string, key: string): Promise<SteerResult> {
    return this.#steer(this.#laneId(flow, key), { kind: 'cancel' })
  }

  /** `drop` ends the waiting events without a run. */
  async drop(flow: string, key: string): Promise<SteerResult> {
    return this.#steer(this.#laneId(flow, key), { kind: 'drop' })
  }

  async hold(flow: string, key: string, hold: HoldOptions): Promise<SteerResult> {
    return this.#hold({ id: this.#laneId(flow, key), flow, key }, hold)
  }

  async unhold(flow: string, key: string): Promise<SteerResult> {
    return this.#steer(this.#laneId(flow, key), { kind: 'unhold' })
  }

  async #hold({ id, flow, key }: Pick<Lane, 'id' | 'flow' | 'key'>, hold: HoldOptions): Promise<SteerResult> {
    assertArguments([hold], { hold: { reason: 'text', by: 'text' } }, 'admin.lanes.hold: ')
    const { reason, by } = hold
    const answer = await this.#steer(id, { kind: 'hold', reason, by, for: parseHoldDuration(hold) })
    if (answer === 'ok') this.#deps.emit('lane.held', { flow, key, reason, by })
    return answer
  }

  #laneId(flow: string, key: string): LaneId {
    return resolveLaneId(this.#deps.flows, flow, key)
  }

  async #steer(id: LaneId, act: LaneAction): Promise<SteerResult> {
    const store = await this.#deps.store()
    if (act.kind === 'run-now') await assertNotHeldBack(store, id)
    return (await store.steer({ what: 'lanes', ids: [id], act })).results[0] ?? 'missing'
  }
}

/** Live events that ran now would overtake the history of their endpoint. */
async function assertNotHeldBack(store: Store, id: LaneId): Promise<void> {
  const { item } = await store.get({ kind: 'lanes', id })
  if (item === undefined || !isHeldBack(item)) return
  const fix = 'Wait, or cancel the replay that the endpoint names as its history.'
  throw new SluiceError('CONFLICT', 'The events wait until their endpoint has got its history.', undefined, fix)
}

function parseHoldDuration(hold: HoldOptions): Millis {
  return parseDuration(hold.for ?? Infinity, 'hold.for')
}

const UNROUTED_BATCH = 200

export class Flows {
  readonly #deps: OperatorDependencies

  constructor(deps: OperatorDependencies) {
    this.#deps = deps
  }

  async list(): Promise<readonly FlowStats[]> {
    const store = await this.#deps.store()
    const known = (await store.stats()).flows
    const empty = [...this.#deps.flows.keys()].filter((flow) => !known.some((one) => one.flow === flow))
    return [...known, ...empty.map((flow) => ({ flow, lanes: 0, live: 0, due: undefined, paused: undefined }))]
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
    for await (const page of findPages(store, { kind: 'marks', filter: { flow }, n: UNROUTED_BATCH })) {
      const ids = page.map(({ id }) => id)
      if (ids.length > 0) await store.steer({ what: 'marks', ids, act: 'drop' })
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
