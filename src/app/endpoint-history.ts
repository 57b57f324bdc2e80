// `EndpointHistories` sends new endpoints the events stored before them: a replay into their own lanes, behind which their live
// events wait without a deadline.
import type { Millis } from '../clock.ts'
import type { ReplayedEndpoints } from '../admin/replay-page.ts'
import type { ReplayRecord } from '../admin/replay-record.ts'
import { resumeReplay } from '../admin/replays.ts'
import type { EndpointDocs } from '../deliver/endpoint-docs.ts'
import type { Endpoint } from '../deliver/endpoint.ts'
import type { EndpointReplayResult, ParsedEndpointReplay } from '../deliver/endpoint-replay.ts'
import type { HistorySender } from '../deliver/endpoint-steering.ts'
import type { Subscriptions } from '../deliver/subscriptions.ts'
import type { MaintenanceTask } from '../maintain/maintenance.ts'
import type { Store } from '../store/contract/index.ts'
import type { EndpointLanes, EndpointLanesDependencies } from './endpoint-lanes.ts'

export interface EndpointHistoriesDependencies extends Pick<EndpointLanesDependencies, 'admin' | 'deliveries'> {
  readonly store: () => Promise<Store>
  readonly docs: EndpointDocs
  readonly subscriptions: Subscriptions
  readonly lanes: EndpointLanes
  readonly publishStep: (of: ReplayRecord) => Promise<unknown>
  readonly knownRoutesEpoch: () => number
}

type EventsToReplay = Extract<ParsedEndpointReplay, { readonly kind: 'events' }>

/** How often a process looks for histories that another process left behind. */
const RECHECK_AFTER: Millis = 15_000

export class EndpointHistories implements HistorySender, ReplayedEndpoints {
  readonly #deps: EndpointHistoriesDependencies

  constructor(deps: EndpointHistoriesDependencies) {
    this.#deps = deps
  }

  async start(endpoint: Endpoint): Promise<void> {
    // The endpoint exists whether its history could be started or not; the maintenance task starts it later.
    await this.#start(endpoint).catch(() => {})
  }

  async #start({ id, tenant, proof, history }: Endpoint): Promise<void> {
    const { admin, deliveries } = this.#deps
    if (history === undefined || proof === 'pending' || deliveries.size === 0) return
    const into = [...deliveries.keys()]
    await admin().replays.sendHistory(history.replay, { endpoint: id, tenant, from: history.from, into })
  }

  async replay({ id, tenant }: Endpoint, { range, pace }: EventsToReplay): Promise<EndpointReplayResult> {
    const { admin, deliveries } = this.#deps
    const filter = { ...range, ...(tenant !== '' && { tenant }) }
    const { id: replay, found } = await admin().replays.sendAgain(id, filter, { ...pace, into: [...deliveries.keys()] })
    return { count: found, replay }
  }

  async cancel({ history }: Endpoint): Promise<void> {
    if (history !== undefined) await this.#deps.admin().replays.cancel(history.replay)
  }

  readonly exists = async (id: string): Promise<boolean> => (await this.#deps.docs.read(id)).value !== undefined

  /** From the change on, all processes give the events of the endpoint their usual window. Then nothing else can close it again. */
  readonly endHistory = async (id: string): Promise<void> => {
    const { docs, subscriptions, lanes } = this.#deps
    const { value } = await docs.read(id)
    if (value === undefined) return
    if (value.history !== undefined) await docs.change(id, undefined, ({ history: _history, ...rest }) => rest)
    await subscriptions.refresh()
    await lanes.release(id)
  }

  /** Continues the histories whose process died between two steps. */
  readonly task: MaintenanceTask = {
    name: 'histories',
    run: async () => {
      const { docs, subscriptions, knownRoutesEpoch, store, publishStep, deliveries } = this.#deps
      if (deliveries.size === 0) return RECHECK_AFTER
      if (subscriptions.epoch < knownRoutesEpoch()) await subscriptions.refresh()
      for (const id of subscriptions.sentHistory) {
        const { value } = await docs.read(id)
        if (value?.history === undefined) continue
        if (!(await resumeReplay(await store(), value.history.replay, publishStep))) await this.#start(value)
      }
      return RECHECK_AFTER
    },
  }
}
