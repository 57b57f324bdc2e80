// One run of a replay's lane: it places one page of events, oldest first, and publishes the next step (L16).
import { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { snooze, type Ending } from '../model/endings.ts'
import type { Run } from '../run/run.ts'
import type { EventRecord, Placement, PlaceItem, PlaceReply, Store } from '../store/contract/index.ts'
import { readReplay, writeReplay, type ReplayRecord } from './replay-record.ts'

export interface ReplayPageDependencies {
  readonly store: () => Promise<Store>
  readonly flows: ReadonlyMap<string, Flow>
  /** Returns the lanes in which the flow places the event. */
  readonly placementsFor: (flow: Flow, event: FlowEvent) => ReplayPlacement
  readonly routesEpoch: () => number
  /** Reads the routes again. */
  readonly refreshRoutes: () => Promise<void>
  /** Calls as soon as the replay's own limit permits this many events. */
  readonly atReplayRate: <T>(record: ReplayRecord, events: number, call: () => Promise<T>) => Promise<T>
  readonly publishStep: (of: ReplayRecord) => Promise<unknown>
  readonly emit: AnyListener
}

type ReplayPlacement =
  | { readonly kind: 'places'; readonly places: readonly Placement[] }
  | { readonly kind: 'mark'; readonly mark: { readonly error: string } }
  | { readonly kind: 'skipped' | 'unwanted' }

const PAGE = 100
/** Bytes of bodies in memory at once, because a page of large events would need too much. */
const BATCH_BYTES = 4 * 1024 * 1024
const RECHECK_AFTER = '5s'
const MAX_ROUTE_TRIES = 5

export async function runReplayPage(deps: ReplayPageDependencies, run: Run): Promise<Ending | void> {
  const store = await deps.store()
  const kept = await readReplay(store, run.key)
  if (kept === undefined || kept.record.state !== 'running') return
  const { record } = kept
  // Only a process that serves the flow can compute its keys, so another process takes over.
  if (!record.into.every((flow) => deps.flows.has(flow))) return snooze({ after: RECHECK_AFTER })
  const page = await readPage(store, record)
  const judged: ReplayDecision[] = []
  for (const piece of splitBySize(page.items)) {
    const bodies = await readBodies(store, piece)
    judged.push(...piece.map((item, at) => decideReplay(deps, record, item, bodies[at])))
  }
  const items = judged.flatMap((one) => (one.kind === 'item' ? one.item : []))
  const results = items.length === 0 ? [] : await placeEvents(deps, store, record, items)
  if (results === 'cancelled') return
  const errors = judged.flatMap((one) => (one.kind === 'failed' ? one.error : []))
  const gone = results.filter((result) => result === 'gone').length
  const isLast = page.next === undefined
  const next: ReplayRecord = {
    ...record,
    state: isLast ? 'done' : 'running',
    ended: isLast ? kept.now : undefined,
    scanned: record.scanned + judged.length,
    placed: record.placed + results.length - gone,
    skipped: record.skipped + judged.filter(({ kind }) => kind === 'skipped').length,
    gone: record.gone + gone + judged.filter(({ kind }) => kind === 'gone').length,
    failed: record.failed + errors.length,
    error: errors.at(-1) ?? record.error,
    cursor: page.next ?? '',
    step: record.step + 1,
  }
  // Somebody has cancelled or removed the replay meanwhile.
  if ((await writeReplay(store, next, kept.rev)) !== 'written') return
  if (isLast) deps.emit('replay.done', { replay: record.id, placed: next.placed })
  else await deps.publishStep(next)
}

async function readPage(
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

/** Splits the events in order into groups of at most `BATCH_BYTES`, each with at least one event. */
function splitBySize(events: readonly EventRecord[]): readonly (readonly EventRecord[])[] {
  const all: EventRecord[][] = []
  let room = 0
  for (const event of events) {
    const last = all.at(-1)
    if (last !== undefined && event.size <= room) last.push(event)
    else {
      all.push([event])
      room = BATCH_BYTES
    }
    room -= event.size
  }
  return all
}

type ReplayDecision =
  | { readonly kind: 'item'; readonly item: PlaceItem }
  | { readonly kind: 'skipped' | 'gone' }
  | { readonly kind: 'failed'; readonly error: string }

/** An Error means that this process cannot decrypt the body. */
type BodyResult = Uint8Array | Error | undefined

/** Reads all bodies in one call. If that fails, it reads them one by one, so that only the unreadable event fails. */
async function readBodies(store: Store, events: readonly EventRecord[]): Promise<readonly BodyResult[]> {
  const read = async (some: readonly EventRecord[]): Promise<readonly BodyResult[]> =>
    (await store.readBodies({ events: some.map(({ id }) => id) })).bodies
  try {
    return await read(events)
  } catch {
    return (await Promise.all(events.map((event) => read([event]).catch(toReadErrors)))).flat()
  }
}

function toReadErrors(error: unknown): readonly BodyResult[] {
  return [error instanceof Error ? error : new Error('The event cannot be read.')]
}

/** The error of a key function may quote the event. */
const ERROR_NOT_KEPT = 'The event could not be routed. Its source is encrypted, so the error is not kept.'

/** Routes the event by the current flows. A failure concerns this event only. */
function decideReplay(
  deps: ReplayPageDependencies,
  record: ReplayRecord,
  event: EventRecord,
  body: BodyResult,
): ReplayDecision {
  if (body instanceof Error) return { kind: 'failed', error: body.message }
  if (body === undefined || event.purged) return { kind: 'gone' }
  const whole = new FlowEvent({ ...event, body })
  const places: Placement[] = []
  for (const name of record.into) {
    const flow = deps.flows.get(name)
    if (flow === undefined) continue
    const placing = deps.placementsFor(flow, whole)
    if (placing.kind === 'mark') return { kind: 'failed', error: whole.encrypted ? ERROR_NOT_KEPT : placing.mark.error }
    if (placing.kind === 'places') places.push(...placing.places)
  }
  if (places.length === 0) return { kind: 'skipped' }
  return { kind: 'item', item: { kind: 'replay', replay: record.id, event: event.id, placements: places } }
}

/** Events that an earlier run placed before it died count as placed. */
function placeEvents(
  deps: ReplayPageDependencies,
  store: Store,
  record: ReplayRecord,
  items: readonly PlaceItem[],
): Promise<PlaceReply['results'] | 'cancelled'> {
  return deps.atReplayRate(record, items.length, async () => {
    // The wait for the limit may have been long, so the state is read again.
    if ((await readReplay(store, record.id))?.record.state !== 'running') return 'cancelled'
    for (let tries = 0; tries < MAX_ROUTE_TRIES; tries++) {
      const { results } = await store.place({ routes: deps.routesEpoch(), items })
      if (!results.includes('routes-old')) return results
      await deps.refreshRoutes()
    }
    throw new Error('The routes kept changing while the events were placed.')
  })
}
