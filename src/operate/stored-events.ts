// Events as they are stored: searched, and one looked at with all that is known of it. What a sender wrote is data here, and
// nothing in it is believed.
import { isUtf8 } from 'node:buffer'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { LaneId } from '../model/identity.ts'
import type { LaneState } from '../model/lane-states.ts'
import { onlyKnown } from '../model/options.ts'
import type { EventRecord, Filter, Receipt, Store } from '../store/contract/index.ts'
import { keptRequest, type KeptRequest } from './kept-request.ts'
import { laneView } from './lane-view.ts'
import type { OperateParts, Page } from './lanes.ts'
import { laneOf } from './name-lane.ts'
import { runsWith, type RunOfEvent } from './runs.ts'

/** All of these together. Times are those of arrival. */
export interface EventFilter {
  readonly source?: string
  readonly type?: string
  readonly tenant?: string
  /** Those that came into one lane: both, or neither. */
  readonly flow?: string
  readonly key?: string
  readonly from?: Millis
  readonly to?: Millis
  /** Also what the engine publishes to itself. */
  readonly own?: boolean
}

export interface StoredEvent {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: Millis
  readonly arrived: Millis
  readonly tenant: string
  readonly subject: string
  /** Of the body. */
  readonly bytes: number
  /** Its data was removed by hand. */
  readonly purged: boolean
  readonly duplicates: number
  readonly lanes: readonly LaneId[]
}

interface EventLane {
  readonly id: LaneId
  /** `gone`: nothing is left in it, and what it was of is known by its runs alone. */
  readonly state: LaneState | 'gone'
  readonly flow: string | undefined
  readonly key: string | undefined
}

export interface WholeEvent extends Omit<StoredEvent, 'lanes'> {
  /** Further CloudEvents attributes, as the sender named them. */
  readonly attributes: Readonly<Record<string, unknown>>
  readonly body: { readonly kind: 'text' | 'base64'; readonly text: string }
  /** Undefined for what came by code. */
  readonly request: KeptRequest | undefined
  readonly receipts: readonly Receipt[]
  readonly lanes: readonly EventLane[]
  /** Newest first, as far as they are among the latest of its lanes. */
  readonly runs: readonly RunOfEvent[]
}

export interface StoredEventsParts extends OperateParts {
  /** What the names of the engine's own sources begin with. */
  readonly ownSources: string
}

const FILTERS: ReadonlySet<string> = new Set<keyof EventFilter>([
  'source',
  'type',
  'tenant',
  'flow',
  'key',
  'from',
  'to',
  'own',
])

/** Whether what is acknowledged would survive a crash, and why. */
export interface StoreSafety {
  readonly durable: boolean
  readonly because: string
  readonly bytes: number
  /** By the store's clock. */
  readonly now: Millis
}

export class StoredEvents {
  readonly #parts: StoredEventsParts

  constructor(parts: StoredEventsParts) {
    this.#parts = parts
  }

  /** Newest first. */
  async list(filter: EventFilter = {}, cursor = '', n = 100): Promise<Page<StoredEvent>> {
    const wanted = this.#filterOf(filter)
    const store = await this.#parts.store()
    const { items, next } = await store.find({ kind: 'events', filter: wanted, cursor, n })
    return { items: items.map(storedEvent), next }
  }

  /** How safely they are stored. */
  async safety(): Promise<StoreSafety> {
    const store = await this.#parts.store()
    const { durable, bytes, now } = await store.stats()
    return { durable: durable.yes, because: durable.because, bytes, now }
  }

  async show(id: string): Promise<WholeEvent | undefined> {
    const store = await this.#parts.store()
    const { item } = await store.get({ kind: 'events', id })
    if (item === undefined) return undefined
    const [lanes, runs] = await Promise.all([lanesOf(store, item.lanes), runsWith(store, item.lanes, id)])
    return {
      ...storedEvent(item),
      attributes: attributesOf(item),
      body: bodyOf(item.body ?? new Uint8Array()),
      request: keptRequest(item.request),
      receipts: item.receipts ?? [],
      lanes: lanes.map((lane) => named(lane, runs)),
      runs,
    }
  }

  #filterOf(filter: EventFilter): Filter {
    onlyKnown(filter, FILTERS, 'stored: ')
    const { flow, key, own = false, ...rest } = filter
    if ((flow === undefined) !== (key === undefined)) {
      throw new SluiceError('CONFIG_INVALID', 'stored: flow and key come together, and name a lane.')
    }
    const { flows, ownSources } = this.#parts
    const lane = flow !== undefined && key !== undefined ? { lane: laneOf(flows, flow, key) } : {}
    return { ...rest, ...lane, ...(own ? {} : { withoutSource: ownSources }) }
  }
}

function storedEvent(event: EventRecord): StoredEvent {
  const { id, source, type, time, arrived, tenant, subject, size, purged, duplicates, lanes } = event
  return { id, source, type, time, arrived, tenant, subject, bytes: size, purged, duplicates, lanes }
}

function attributesOf({ attributes }: EventRecord): Readonly<Record<string, unknown>> {
  return attributes === '' ? {} : (JSON.parse(attributes) as Record<string, unknown>)
}

/** Bytes that are no text would come out as other bytes. */
function bodyOf(body: Uint8Array): WholeEvent['body'] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return isUtf8(bytes) ? { kind: 'text', text: bytes.toString() } : { kind: 'base64', text: bytes.toString('base64') }
}

function lanesOf(store: Store, ids: readonly LaneId[]): Promise<readonly EventLane[]> {
  return Promise.all(
    ids.map(async (id): Promise<EventLane> => {
      const { item, now } = await store.get({ kind: 'lanes', id })
      if (item === undefined) return { id, state: 'gone', flow: undefined, key: undefined }
      const { state, flow, key } = laneView(item, now)
      return { id, state, flow, key }
    }),
  )
}

function named(lane: EventLane, runs: readonly RunOfEvent[]): EventLane {
  const run = runs.find((one) => one.lane === lane.id)
  return run === undefined ? lane : { ...lane, flow: run.flow, key: run.key }
}
