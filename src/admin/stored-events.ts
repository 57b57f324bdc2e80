// `StoredEvents` searches stored events and shows one with everything known about it. All content from a sender is
// untrusted data.
import { isUtf8 } from 'node:buffer'
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { parseAttributes } from '../model/event.ts'
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { EventRecord, RecordFilter, Receipt } from '../store/contract/index.ts'
import { formatRoutingNote, type Skip } from '../model/routing.ts'
import { countByTime, type EventHistogram, type EventHistogramDependencies } from './event-histogram.ts'
import { searchEvents, type EventMatch, type SearchExtent } from './event-search.ts'
import { possibleLaneIds, resolveLaneId } from './lane-view.ts'
import type { OperatorDependencies } from './lanes.ts'
import type { Page } from './pages.ts'
import { readEventDeliveries, readEventLanes, withLaneName, type EventDelivery, type EventLane } from './event-trail.ts'
import { findRunsOfEvent, type EventRun } from './runs.ts'

/** All given conditions must match. Times are arrival times. */
export interface EventFilter {
  readonly source?: string
  readonly type?: string
  readonly tenant?: string
  readonly subject?: string
  /** Events of one lane: give both or neither. */
  readonly flow?: string
  readonly key?: string
  readonly from?: Millis
  readonly to?: Millis
  /** Includes the events that Sluice publishes to itself. */
  readonly own?: boolean
}

/** The fields of a stored event. `unrouted` has the flows for which the event still lacks its placements. */
type EventFields = Pick<
  EventRecord,
  'id' | 'source' | 'type' | 'time' | 'arrived' | 'tenant' | 'subject' | 'purged' | 'duplicates' | 'lanes' | 'unrouted'
>

/** A search for a text, in the fields, keys and payloads of the events. */
export interface EventSearchFilter extends EventFilter {
  readonly q?: string
}

/** With `q`: where the text was found, and how far this page looked. */
export interface StoredEventPage extends Page<StoredEvent> {
  readonly searched?: SearchExtent
}

export interface StoredEvent extends EventFields {
  /** With `q`: where the text was found. */
  readonly found?: EventMatch

  /** The size of the body. */
  readonly bytes: number
  /** The flows that matched the event but had no key for it. */
  readonly skipped: readonly Skip[]
  /**
   * `skipped` and `unrouted` as a sentence, e.g. "skipped by sync-customer: no key" or "no flow wants this event"; '' if all flows
   * took it.
   */
  readonly note: string
}

/** The stored HTTP request of an event, kept for audit. */
interface StoredRequest {
  readonly id: string
  readonly method: string
  /** The path and query, without secrets. */
  readonly url: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  /** The whole body, stored with the first of several events. */
  readonly body64: string | undefined
}

export interface StoredEventDetails extends Omit<StoredEvent, 'lanes'> {
  /** Further CloudEvents attributes with the sender's names. */
  readonly attributes: Readonly<Record<string, unknown>>
  readonly body: { readonly kind: 'text' | 'base64'; readonly text: string }
  /** Undefined for an event that `publish()` stored. */
  readonly request: StoredRequest | undefined
  readonly receipts: readonly Receipt[]
  readonly lanes: readonly EventLane[]
  /** Newest first, among the latest runs of its lanes. */
  readonly runs: readonly EventRun[]
  /** What was or will be sent to endpoints because of the event, for its first 8 endpoints. */
  readonly deliveries: readonly EventDelivery[]
  /** The event is kept at least until then, and longer while it waits or runs. */
  readonly keptUntil: Millis
}

export interface StoredEventsDependencies extends OperatorDependencies {
  /** The prefix of Sluice's own sources. */
  readonly reservedSourcePrefix: string
  readonly clock: Clock
  readonly recorder: EventHistogramDependencies['recorder']
  /** How long events are kept, by source; '' for all others. */
  readonly keepEvents: Readonly<Record<string, Millis>>
}

/** Whether an acknowledged event survives a crash, and why. */
export interface StoreDurability {
  readonly durable: boolean
  readonly because: string
  readonly bytes: number
  /** The time of the store. */
  readonly now: Millis
}

export class StoredEvents {
  readonly #deps: StoredEventsDependencies

  constructor(deps: StoredEventsDependencies) {
    this.#deps = deps
  }

  /** `list` returns the newest event first. With `q`, a page looks at a bounded number of events, and may be empty. */
  async list(filter: EventSearchFilter = {}, cursor = '', n = 100): Promise<StoredEventPage> {
    const { q, ...rest } = filter
    const wanted = this.#toStoreFilter(rest)
    const store = await this.#deps.store()
    if (q === undefined) {
      const { items, next } = await store.find({ kind: 'events', filter: wanted, cursor, n })
      return { items: items.map(toStoredEvent), next }
    }
    const { clock, flows } = this.#deps
    const lanes = new Set([...flows.keys()].flatMap((flow) => possibleLaneIds(flows, flow, q)))
    const { items, next, searched } = await searchEvents({ store, clock, filter: wanted, text: q, lanes, cursor, n })
    const found = items.map(([event, match]) => ({ ...toStoredEvent(event), found: match }))
    // An id is found however old its event is, before the search.
    const { own: _own, ...fields } = rest
    const isFiltered = Object.values(fields).some((value) => value !== undefined)
    const named = isFiltered ? undefined : (await store.get({ kind: 'events', id: q })).item
    const others = found.filter(({ id }) => id !== named?.id)
    const first = named === undefined || cursor !== '' ? [] : [{ ...toStoredEvent(named), found: 'id' as const }]
    return { items: [...first, ...others], next, searched }
  }

  /** `histogram` counts the arrivals of the last 24 hours in steps. */
  async histogram(filter: EventFilter = {}, step: Duration = '30m'): Promise<EventHistogram> {
    return countByTime(this.#deps, this.#toStoreFilter(filter), step)
  }

  /** `safety` describes the durability of the store. */
  async safety(): Promise<StoreDurability> {
    const store = await this.#deps.store()
    const { durable, bytes, now } = await store.stats()
    return { durable: durable.isDurable, because: durable.reason, bytes, now }
  }

  async show(id: string): Promise<StoredEventDetails | undefined> {
    const store = await this.#deps.store()
    const { item } = await store.get({ kind: 'events', id })
    if (item === undefined) return undefined
    const { flows } = this.#deps
    const [lanes, runs] = await Promise.all([
      readEventLanes(store, item.lanes, id),
      findRunsOfEvent({ store, flows }, item.lanes, id),
    ])
    const named = lanes.map((lane) => withLaneName(lane, runs))
    const { endpoints } = this.#deps.deliveries()
    const { keepEvents } = this.#deps
    return {
      ...toStoredEvent(item),
      attributes: parseAttributes(item.attributes),
      body: toDisplayBody(item.body ?? new Uint8Array()),
      request: parseStoredRequest(item.request),
      receipts: item.receipts ?? [],
      lanes: named,
      runs,
      deliveries: await readEventDeliveries({ endpoints, flows, event: id }, named, runs),
      keptUntil: item.arrived + (keepEvents[item.source] ?? keepEvents[''] ?? 0),
    }
  }

  #toStoreFilter(filter: EventFilter): RecordFilter {
    assertKnownOptions(filter, ['source', 'type', 'tenant', 'subject', 'flow', 'key', 'from', 'to', 'own'], 'stored: ')
    const { flow, key, own = false, ...rest } = filter
    if ((flow === undefined) !== (key === undefined)) {
      throw new SluiceError('CONFIG_INVALID', 'events: flow and key must be used together, to name a lane.')
    }
    const { flows, reservedSourcePrefix } = this.#deps
    const lane = flow !== undefined && key !== undefined ? { lane: resolveLaneId(flows, flow, key) } : {}
    return { ...rest, ...lane, ...(own ? {} : { withoutSource: reservedSourcePrefix }) }
  }
}

function toStoredEvent(event: EventRecord): StoredEvent {
  const { id, source, type, time, arrived, tenant, subject, purged, duplicates, lanes, unrouted } = event
  const facts = { id, source, type, time, arrived, tenant, subject, purged, duplicates, lanes, unrouted }
  return { ...facts, bytes: event.size, skipped: event.skips, note: purged ? '' : formatRoutingNote(event) }
}

/** Bytes that are not valid UTF-8 text are returned in base64, because decoding would change them. */
function toDisplayBody(body: Uint8Array): StoredEventDetails['body'] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return isUtf8(bytes) ? { kind: 'text', text: bytes.toString() } : { kind: 'base64', text: bytes.toString('base64') }
}

/** Parses the request field by field, because another release may have written it. Undefined if none was stored. */
function parseStoredRequest(bytes: Uint8Array | undefined): StoredRequest | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined
  const kept = parseFields(bytes)
  if (kept === undefined) return undefined
  const body64 = kept['body64']
  return {
    id: toText(kept['id']),
    method: toText(kept['method']),
    url: toText(kept['url']),
    address: toText(kept['address']),
    headers: parseHeaders(kept['headers']),
    body64: typeof body64 === 'string' ? body64 : undefined,
  }
}

function parseFields(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function parseHeaders(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, toText(text)]))
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
