// `Lanes` is what operators see of lanes and do to one (L14).
import type { Millis } from '../clock.ts'
import type { Endpoints } from '../deliver/endpoints.ts'
import type { Flow } from '../model/flow.ts'
import type { LaneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import { SluiceError } from '../errors.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertArguments, assertKnownOptions } from '../validate/options.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { ExplainDependencies } from '../observe/explain/explain.ts'
import type { LaneAction, PurgeTarget, RunRecord, SteerReply, Store } from '../store/contract/index.ts'
import { possibleLaneIds, resolveLaneId, toLaneView, type LaneView } from './lane-view.ts'
import type { Page } from './pages.ts'
import { ArrivalCache, type Arrival } from './arrival-cache.ts'
import { readLaneDetails, type LaneDetails } from './lane-details.ts'
import type { LaneList, LaneListFilter, ListedLanes } from './lane-list.ts'
import type { RunFilter, Runs } from './runs.ts'

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
  readonly endpoints: Pick<Endpoints, 'list' | 'get' | 'deliveries'>
  /** Returns whether the lane's live events wait until its endpoint has got its history. */
  isHeldBack(lane: Lane): Promise<boolean>
  /** Called before a purge, because stored responses of endpoints may echo the purged events. */
  purgeAnswers(target: PurgeTarget): Promise<void>
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

interface LaneFilter {
  readonly flow?: string
  /** Only together with `flow`. */
  readonly key?: string
  readonly tenant?: string
}

/** A filter over what lanes do. It reads a scan that is about a second old, and the lanes of the page again. */
export interface LaneSearchFilter extends LaneFilter, LaneListFilter {}

export interface ListedLane extends LaneView {
  /** The place of the lane among the lanes of its flow that are in line: 1 is next. */
  readonly rank: number | undefined
  /** The limit for whose slot the live run waits in this process, and for how long. */
  readonly waitsFor: { readonly limit: string; readonly in: Millis } | undefined
  /** The arrivals of the first 16 events that run or wait. A page of more than 100 lanes has none. */
  readonly arrivals: readonly Arrival[] | undefined
}

export interface LanePage extends Page<ListedLane> {
  /** With `states`, `q` or `order`: how many lanes match in each state, also in the states that `states` excludes. */
  readonly counts?: ListedLanes['counts']
  /** Whether `counts` has all lanes. */
  readonly exact?: boolean
}

export interface LanesDependencies extends OperatorDependencies {
  readonly list: LaneList
  readonly work: () => Promise<Pick<ExplainDependencies, 'findSlotWait'>>
  readonly runs: Runs
}

const MAX_WITH_ARRIVALS = 100

/** An action on a lane that is named by its id. */
export type OperatorLaneAction =
  | { readonly kind: 'run-now' | 'cancel' | 'drop' | 'unhold' }
  | ({ readonly kind: 'hold' } & HoldOptions)

export class Lanes {
  readonly #deps: LanesDependencies
  readonly #arrivals = new ArrivalCache()

  constructor(deps: LanesDependencies) {
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

  /** `search` is `list` with the fields formatted for people, and with filters and an order over what the lanes do. */
  async search(filter: LaneSearchFilter = {}, cursor = '', n = 100): Promise<LanePage> {
    const { flow, key, tenant, states, q, order } = filter
    const store = await this.#deps.store()
    if (key !== undefined) return this.#findByKey(store, filter)
    if (states === undefined && q === undefined && order === undefined) {
      const given = { ...(flow !== undefined && { flow }), ...(tenant !== undefined && { tenant }) }
      const { items, next, now } = await store.find({ kind: 'lanes', filter: given, cursor, n })
      return { items: await this.#toListed(store, items, now, n), next }
    }
    const { ids, next, ...counted } = await this.#deps.list.list(filter, cursor, n)
    const found = await Promise.all(ids.map((id) => store.get({ kind: 'lanes', id })))
    const lanes = found.flatMap(({ item }) => item ?? [])
    return { items: await this.#toListed(store, lanes, found[0]?.now ?? 0, n), next, ...counted }
  }

  async #findByKey(store: Store, { flow, key = '', tenant, states, q, order }: LaneSearchFilter): Promise<LanePage> {
    if (flow === undefined) throw new SluiceError('CONFIG_INVALID', 'lanes: key must be used together with flow.')
    if (states !== undefined || q !== undefined || order !== undefined)
      throw new SluiceError(
        'CONFIG_INVALID',
        'lanes: key must be used without state, q and order, because it selects one lane. Remove key, or the others.',
      )
    const ids = possibleLaneIds(this.#deps.flows, flow, key)
    const found = await Promise.all(ids.map((id) => store.get({ kind: 'lanes', id })))
    const lanes = found
      .flatMap(({ item }) => item ?? [])
      .filter((lane) => tenant === undefined || lane.tenant === tenant)
    return { items: await this.#toListed(store, lanes, found[0]?.now ?? 0, 1), next: undefined }
  }

  async #toListed(store: Store, lanes: readonly Lane[], now: Millis, n: number): Promise<readonly ListedLane[]> {
    if (lanes.length === 0) return []
    const work = await this.#deps.work()
    const isAnyInLine = lanes.some((lane) => lane.due <= now)
    const ranks = isAnyInLine ? await this.#deps.list.readRanks() : new Map<string, number>()
    return Promise.all(
      lanes.map(async (lane): Promise<ListedLane> => {
        const view = toLaneView(lane, now)
        const slot = view.state === 'running' && view.run !== undefined ? work.findSlotWait(view.run.id) : undefined
        const arrivals = n > MAX_WITH_ARRIVALS ? undefined : await this.#arrivals.read(store, lane)
        return {
          ...view,
          rank: ranks.get(lane.id),
          waitsFor: slot === undefined ? undefined : { limit: slot.limit, in: Math.max(0, slot.until - now) },
          arrivals,
        }
      }),
    )
  }

  /** `show` takes the id, because a key can be 16 KB of any text. */
  async show(id: LaneId): Promise<LaneView | undefined> {
    const store = await this.#deps.store()
    const { item, now } = await store.get({ kind: 'lanes', id })
    return item === undefined ? undefined : toLaneView(item, now)
  }

  /** `details` is `show` with the events of the lane, the options of its flow, and its last runs. */
  async details(id: LaneId): Promise<(ListedLane & LaneDetails) | undefined> {
    const store = await this.#deps.store()
    const { item, now } = await store.get({ kind: 'lanes', id })
    if (item === undefined) return undefined
    const { flows, runs } = this.#deps
    const listRuns = (filter: RunFilter, n: number): Promise<Page<RunRecord>> => runs.list(filter, '', n)
    const [listed, details] = await Promise.all([
      this.#toListed(store, [item], now, 1),
      readLaneDetails(item, { store, flow: flows.get(item.flow), listRuns }),
    ])
    const [lane] = listed
    return lane === undefined ? undefined : { ...lane, ...details }
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

  /** Live events that ran now would overtake the history of their endpoint. */
  async #assertNotHeldBack(store: Store, id: LaneId): Promise<void> {
    const { item } = await store.get({ kind: 'lanes', id })
    if (item === undefined || !(await this.#deps.deliveries().isHeldBack(item))) return
    const fix = 'Wait, or cancel the replay that the endpoint names as its history.'
    throw new SluiceError('CONFLICT', 'The events wait until their endpoint has got its history.', undefined, fix)
  }

  #laneId(flow: string, key: string): LaneId {
    return resolveLaneId(this.#deps.flows, flow, key)
  }

  async #steer(id: LaneId, act: LaneAction): Promise<SteerResult> {
    const store = await this.#deps.store()
    if (act.kind === 'run-now') await this.#assertNotHeldBack(store, id)
    return (await store.steer({ what: 'lanes', ids: [id], act })).results[0] ?? 'missing'
  }
}

function parseHoldDuration(hold: HoldOptions): Millis {
  return parseDuration(hold.for ?? Infinity, 'hold.for')
}
