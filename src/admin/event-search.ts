// `searchEvents` finds a text in stored events: in their fields, in their keys, and in their payloads. Each call looks at a bounded
// number of events and bytes, and says how far it looked.
import type { Clock, Millis } from '../clock.ts'
import { decodeText } from '../model/event.ts'
import type { LaneId } from '../model/identity.ts'
import type { EventRecord, FindReply, RecordFilter, Store } from '../store/contract/index.ts'

/** Where the text was found. `key`: the event is in a lane with exactly this key. */
export type EventMatch = 'id' | 'type' | 'source' | 'key' | 'tenant' | 'subject' | 'payload'

export interface SearchExtent {
  /** How many events this page looked at. */
  readonly events: number
  /** The arrival of the oldest one. */
  readonly from: Millis | undefined
  /** Whether no older event is left. */
  readonly complete: boolean
}

interface EventSearchCall {
  readonly store: Store
  readonly clock: Clock
  readonly filter: RecordFilter
  readonly text: string
  /** The lanes whose key is the text. */
  readonly lanes: ReadonlySet<LaneId>
  readonly cursor: string
  readonly n: number
}

interface EventSearchResult {
  readonly items: readonly (readonly [event: EventRecord, found: EventMatch])[]
  readonly next: string | undefined
  readonly searched: SearchExtent
}

const MAX_EVENTS = 2_000
const MAX_BYTES = 8 * 1024 * 1024
/** No page begins after this time, so that a call stays short on a slow machine too. */
const MAX_MS: Millis = 40
const PAGE = 250

export async function searchEvents(call: EventSearchCall): Promise<EventSearchResult> {
  const { store, clock, filter, n } = call
  const startedAt = clock.monotonic()
  const items: [EventRecord, EventMatch][] = []
  const budget = { bytes: MAX_BYTES }
  let cursor: string | undefined = call.cursor
  let events = 0
  let from: Millis | undefined
  while (cursor !== undefined && events < MAX_EVENTS && items.length < n && budget.bytes > 0) {
    if (events > 0 && clock.monotonic() - startedAt > MAX_MS) break
    const page: FindReply<'events'> = await store.find({ kind: 'events', filter, cursor, n: PAGE })
    const { found, looked } = await searchPage(call, page.items, n - items.length, budget)
    items.push(...found)
    events += looked
    from = page.items[looked - 1]?.arrived ?? from
    // If the search stopped inside the page, it continues behind the last event that it looked at.
    cursor = looked === page.items.length ? page.next : await findCursor(call, cursor, looked)
    if (page.items.length === 0) break
  }
  return { items, next: cursor, searched: { events, from, complete: cursor === undefined } }
}

async function findCursor(
  { store, filter }: EventSearchCall,
  cursor: string,
  looked: number,
): Promise<string | undefined> {
  return (await store.find({ kind: 'events', filter, cursor, n: looked })).next
}

interface SearchedPage {
  readonly found: readonly [EventRecord, EventMatch][]
  /** How many events of the page were looked at. */
  readonly looked: number
}

async function searchPage(
  call: EventSearchCall,
  events: readonly EventRecord[],
  maxFound: number,
  budget: { bytes: number },
): Promise<SearchedPage> {
  const text = call.text.toLowerCase()
  const matches = events.map((event) => matchFields(event, text, call.lanes))
  const bodies = await readBodies(call.store, events, matches, budget)
  const found: [EventRecord, EventMatch][] = []
  for (const [at, event] of events.entries()) {
    const body = bodies.get(at)
    // The byte budget of the call is used up. The first event is always searched, so that every call makes progress.
    if (body === 'unread' && at > 0) return { found, looked: at }
    const isInBody = body instanceof Uint8Array && decodeText(body).toLowerCase().includes(text)
    const match = matches[at] ?? (isInBody ? 'payload' : undefined)
    if (match === undefined) continue
    found.push([event, match])
    if (found.length === maxFound) return { found, looked: at + 1 }
  }
  return { found, looked: events.length }
}

function matchFields(event: EventRecord, text: string, lanes: ReadonlySet<LaneId>): EventMatch | undefined {
  const field = FIELDS.find((name) => event[name].toLowerCase().includes(text))
  return field ?? (event.lanes.some((lane) => lanes.has(lane)) ? 'key' : undefined)
}

const FIELDS = ['id', 'type', 'source', 'tenant', 'subject'] as const

/**
 * Reads the bodies of the events that no field matched, by their index in the page. A body beyond the budget is `unread`.
 * A body is undefined if the event was removed meanwhile.
 */
async function readBodies(
  store: Store,
  events: readonly EventRecord[],
  matches: readonly (EventMatch | undefined)[],
  budget: { bytes: number },
): Promise<ReadonlyMap<number, Uint8Array | 'unread' | undefined>> {
  const wanted = events.flatMap((event, at) => (matches[at] === undefined && event.size > 0 && !event.purged ? at : []))
  const read = wanted.filter((at, n) => {
    if (budget.bytes <= 0 && n > 0) return false
    budget.bytes -= events[at]?.size ?? 0
    return true
  })
  const { bodies } = await store.readBodies({ events: read.map((at) => events[at]?.id ?? '') })
  const byPlace = new Map<number, Uint8Array | 'unread' | undefined>(wanted.map((at) => [at, 'unread']))
  for (const [n, at] of read.entries()) byPlace.set(at, bodies[n])
  return byPlace
}
