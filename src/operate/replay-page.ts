// One run of a replay's lane: a page of events, oldest first, takes its places; then the next step is published (L16).
import { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/events.ts'
import { again, type Ending } from '../run/endings.ts'
import type { Run } from '../run/run.ts'
import type { EventRecord, Place, PlaceItem, PlaceReply, Store } from '../store/contract/index.ts'
import { readReplay, writeReplay, type ReplayRecord } from './replay-record.ts'

export interface ReplayPageParts {
  readonly store: () => Promise<Store>
  readonly flows: ReadonlyMap<string, Flow>
  /** Where the flow puts the event. */
  readonly places: (flow: Flow, event: FlowEvent) => Placing
  readonly epoch: () => number
  /** Reads the routes anew. */
  readonly refresh: () => Promise<void>
  /** Calls as soon as the replay's own limit lets so many events through. */
  readonly paced: <T>(record: ReplayRecord, events: number, call: () => Promise<T>) => Promise<T>
  readonly step: (of: ReplayRecord) => Promise<unknown>
  readonly emit: AnyListener
}

type Placing =
  | { readonly kind: 'places'; readonly places: readonly Place[] }
  | { readonly kind: 'mark'; readonly mark: { readonly error: string } }
  | { readonly kind: 'skipped' | 'unwanted' }

const PAGE = 100
/** Of bodies, at hand at once: a page of large events would be most of the memory. */
const BYTES_AT_ONCE = 4 * 1024 * 1024
const LOOK_AGAIN = '5s'
const ROUTES_TRIES = 5

export async function replayPage(parts: ReplayPageParts, run: Run): Promise<Ending | void> {
  const store = await parts.store()
  const kept = await readReplay(store, run.key)
  if (kept === undefined || kept.record.state !== 'running') return
  const { record } = kept
  // Only who serves a flow knows its keys: this is for another process.
  if (!record.into.every((flow) => parts.flows.has(flow))) return again({ after: LOOK_AGAIN })
  const page = await pageOf(store, record)
  const judged: Judged[] = []
  for (const piece of pieces(page.items)) {
    const bodies = await bodiesOf(store, piece)
    judged.push(...piece.map((item, at) => judge(parts, record, item, bodies[at])))
  }
  const items = judged.flatMap((one) => (one.kind === 'item' ? one.item : []))
  const results = items.length === 0 ? [] : await placed(parts, store, record, items)
  if (results === 'cancelled') return
  const errors = judged.flatMap((one) => (one.kind === 'failed' ? one.error : []))
  const gone = results.filter((result) => result === 'gone').length
  const isLast = page.next === undefined
  const next: ReplayRecord = {
    ...record,
    state: isLast ? 'done' : 'running',
    ended: isLast ? kept.now : undefined,
    looked: record.looked + judged.length,
    placed: record.placed + results.length - gone,
    skipped: record.skipped + judged.filter(({ kind }) => kind === 'skipped').length,
    gone: record.gone + gone + judged.filter(({ kind }) => kind === 'gone').length,
    failed: record.failed + errors.length,
    error: errors.at(-1) ?? record.error,
    cursor: page.next ?? '',
    step: record.step + 1,
  }
  // Somebody has cancelled it, or removed it, meanwhile.
  if ((await writeReplay(store, next, kept.rev)) !== 'written') return
  if (isLast) parts.emit('replay.done', { replay: record.id, placed: next.placed })
  else await parts.step(next)
}

async function pageOf(
  store: Store,
  record: ReplayRecord,
): Promise<{ readonly items: readonly EventRecord[]; readonly next: string | undefined }> {
  if (record.event !== undefined) {
    const { item } = await store.get({ kind: 'events', id: record.event })
    return { items: item === undefined ? [] : [item], next: undefined }
  }
  const filter = { ...record.filter, to: record.until }
  const n = Math.min(PAGE, record.rate)
  return store.find({ kind: 'events', filter, cursor: record.cursor, n, oldestFirst: true })
}

/** In order; each as large as may be, and of one event at least. */
function pieces(events: readonly EventRecord[]): readonly (readonly EventRecord[])[] {
  const all: EventRecord[][] = []
  let room = 0
  for (const event of events) {
    const last = all.at(-1)
    if (last !== undefined && event.size <= room) last.push(event)
    else {
      all.push([event])
      room = BYTES_AT_ONCE
    }
    room -= event.size
  }
  return all
}

type Judged =
  | { readonly kind: 'item'; readonly item: PlaceItem }
  | { readonly kind: 'skipped' | 'gone' }
  | { readonly kind: 'failed'; readonly error: string }

/** An error: what it takes to open them is not here. */
type Body = Uint8Array | Error | undefined

/** All at once; where that fails, one by one, so that one that cannot be opened is alone with it. */
async function bodiesOf(store: Store, events: readonly EventRecord[]): Promise<readonly Body[]> {
  const read = async (some: readonly EventRecord[]): Promise<readonly Body[]> =>
    (await store.bodies({ events: some.map(({ id }) => id) })).bodies
  try {
    return await read(events)
  } catch {
    return (await Promise.all(events.map((event) => read([event]).catch(unopened)))).flat()
  }
}

function unopened(error: unknown): readonly Body[] {
  return [error instanceof Error ? error : new Error('It cannot be read.')]
}

/** Where it goes, by the flows as they are now. What is wrong with one event is that one's affair. */
function judge(parts: ReplayPageParts, record: ReplayRecord, event: EventRecord, body: Body): Judged {
  if (body instanceof Error) return { kind: 'failed', error: body.message }
  if (body === undefined || event.purged) return { kind: 'gone' }
  const whole = new FlowEvent({ ...event, body })
  const places: Place[] = []
  for (const name of record.into) {
    const flow = parts.flows.get(name)
    if (flow === undefined) continue
    const placing = parts.places(flow, whole)
    if (placing.kind === 'mark') return { kind: 'failed', error: placing.mark.error }
    if (placing.kind === 'places') places.push(...placing.places)
  }
  if (places.length === 0) return { kind: 'skipped' }
  return { kind: 'item', item: { kind: 'replay', replay: record.id, event: event.id, places } }
}

/** Those placed before, by a run that could not say so any more, are placed. */
function placed(
  parts: ReplayPageParts,
  store: Store,
  record: ReplayRecord,
  items: readonly PlaceItem[],
): Promise<PlaceReply['results'] | 'cancelled'> {
  return parts.paced(record, items.length, async () => {
    // The wait may have been long.
    if ((await readReplay(store, record.id))?.record.state !== 'running') return 'cancelled'
    for (let tries = 0; tries < ROUTES_TRIES; tries++) {
      const { results } = await store.place({ routes: parts.epoch(), items })
      if (!results.includes('routes-old')) return results
      await parts.refresh()
    }
    throw new Error('The routes change faster than events can be placed.')
  })
}
