// Where an event is and went: its lanes, and what was sent to endpoints because of it.
import type { Millis } from '../clock.ts'
import type { DeliveryAttempt, DeliveryRecord } from '../deliver/deliveries.ts'
import type { Endpoints } from '../deliver/endpoints.ts'
import type { Flow } from '../model/flow.ts'
import type { LaneId } from '../model/identity.ts'
import type { LaneState } from '../model/lane-states.ts'
import type { Store } from '../store/contract/index.ts'
import { readLaneEvents } from './lane-details.ts'
import { toLaneView, type LaneView } from './lane-view.ts'
import type { EventRun } from './runs.ts'

export interface EventLane {
  readonly id: LaneId
  /** `gone` means that the lane is empty and was removed. Its flow and key are then known from its runs only. */
  readonly state: LaneState | 'gone'
  readonly flow: string | undefined
  readonly key: string | undefined
  readonly due?: Millis | undefined
  /** How many events wait in the lane, and the position of this one among them; 1 is next. Undefined beyond the first 100. */
  readonly waiting?: number
  readonly position?: number | undefined
  /** The run of the lane, if it has the event. */
  readonly run?: LaneView['run']
}

export interface EventDelivery {
  /** The id and the name of the endpoint. */
  readonly endpoint: string
  readonly name: string
  /** Undefined while the event waits for its batch. */
  readonly run: string | undefined
  readonly status: DeliveryRecord['status']
  readonly attempts: readonly DeliveryAttempt[]
  readonly nextRetryAt: Millis | undefined
}

/** The search for the position of an event ends after this many events. */
const MAX_POSITION = 100
const MAX_ENDPOINTS = 8
/** How many deliveries of an endpoint are searched for the runs of the event. */
const DELIVERIES_READ = 50

export function readEventLanes(store: Store, ids: readonly LaneId[], event: string): Promise<readonly EventLane[]> {
  return Promise.all(
    ids.map(async (id): Promise<EventLane> => {
      const { item, now } = await store.get({ kind: 'lanes', id })
      if (item === undefined) return { id, state: 'gone', flow: undefined, key: undefined }
      const { state, flow, key, due, waiting, run } = toLaneView(item, now)
      const events = await readLaneEvents(store, item, MAX_POSITION)
      const isInRun = events.some((one) => one.id === event && one.inRun)
      const position = events.filter(({ inRun }) => !inRun).findIndex((one) => one.id === event) + 1
      return { id, state, flow, key, due, waiting, ...(position > 0 && { position }), ...(isInRun && { run }) }
    }),
  )
}

/** `withLaneName` takes the flow and the key of a lane that is gone from its runs. */
export function withLaneName(lane: EventLane, runs: readonly EventRun[]): EventLane {
  const run = runs.find((one) => one.lane === lane.id)
  return run === undefined ? lane : { ...lane, flow: run.flow, key: run.key }
}

interface DeliveriesOfEvent {
  readonly endpoints: Pick<Endpoints, 'get' | 'deliveries'>
  readonly flows: ReadonlyMap<string, Flow>
  readonly event: string
}

/** `readEventDeliveries` reads the deliveries of the event's lanes. It omits the deliveries of a deleted endpoint. */
export async function readEventDeliveries(
  { endpoints, flows }: DeliveriesOfEvent,
  lanes: readonly EventLane[],
  runs: readonly EventRun[],
): Promise<readonly EventDelivery[]> {
  const own = lanes.filter(({ flow = '' }) => flows.get(flow)?.isDelivery === true).slice(0, MAX_ENDPOINTS)
  const found = await Promise.all(
    own.map(async (lane): Promise<readonly EventDelivery[]> => {
      const id = lane.key ?? ''
      const endpoint = await endpoints.get(id)
      if (endpoint === undefined) return []
      const ids = new Set([...runs.filter((run) => run.lane === lane.id).map((run) => run.id), lane.run?.id])
      const records = (await endpoints.deliveries(id, DELIVERIES_READ)).filter((record) => ids.has(record.id))
      const common = { endpoint: id, name: endpoint.name }
      const sent = records.map(({ id: run, status, attempts, nextRetryAt }): EventDelivery => {
        return { ...common, run, status, attempts, nextRetryAt }
      })
      const waits = sent.length === 0 && lane.position !== undefined
      return waits ? [{ ...common, run: undefined, status: 'PENDING', attempts: [], nextRetryAt: undefined }] : sent
    }),
  )
  return found.flat()
}
