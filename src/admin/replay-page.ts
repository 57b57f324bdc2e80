// One run of a replay's lane: it places one page of events, oldest first, and publishes the next step (L16).
import type { Millis } from '../clock.ts'
import { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener } from '../observe/emitter.ts'
import { defer, snooze, type Ending } from '../model/endings.ts'
import { laneId } from '../model/identity.ts'
import type { Run } from '../run/run.ts'
import type { EventRecord, Placement, PlaceItem, PlaceReply, Store } from '../store/contract/index.ts'
import { readReplay, writeReplay, type ReplayRecord, type StoredReplay } from './replay-record.ts'

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
  readonly endpoints: ReplayedEndpoints
}

/** `ReplayedEndpoints` is what a replay to one endpoint needs to know of it. */
export interface ReplayedEndpoints {
  readonly exists: (id: string) => Promise<boolean>
  /** Makes the live events of the endpoint due, which waited behind its history. */
  readonly endHistory: (id: string) => Promise<void>
}

type ReplayPlacement =
  | { readonly kind: 'placed'; readonly placements: readonly Placement[] }
  | { readonly kind: 'unrouted'; readonly entry: { readonly error: string } }
  | { readonly kind: 'skipped' | 'unwanted' }

const PAGE = 100
/** Bytes of bodies in memory at once, because a page of large events would need too much. */
const BATCH_BYTES = 4 * 1024 * 1024
const RECHECK_AFTER = '5s'
const MIN_WAIT: Millis = 50
const MAX_WAIT: Millis = 5_000
const MAX_UNSENT = 1_000
const MAX_ROUTE_TRIES = 5

export async function runReplayPage(deps: ReplayPageDependencies, run: Run): Promise<Ending | void> {
  const store = await deps.store()
  const kept = await readReplay(store, run.key)
  if (kept === undefined) return
  const { record } = kept
  if (record.state === 'running' && record.endpoint !== undefined && !(await deps.endpoints.exists(record.endpoint)))
    return void (await writeReplay(store, { ...record, state: 'cancelled', ended: kept.now }, kept.rev))
  if (record.isHistory === true && (record.state === 'cancelled' || record.isPlaced === true))
    return endHistory(deps, store, kept, run)
  if (record.state !== 'running') return
  // Only a process that serves the flow can compute its keys, so another process takes over.
  if (!record.into.every((flow) => deps.flows.has(flow))) return snooze({ after: RECHECK_AFTER })
  if (record.endpoint !== undefined && (await countUnsent(store, record)) >= maxUnsent(record))
    return waitForEndpoint(run)
  // With older routes, events would be skipped that a newer endpoint wants.
  if (deps.routesEpoch() < kept.routes) await deps.refreshRoutes()
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
  const isLast = page.next === undefined || record.scanned + judged.length >= (record.most ?? Infinity)
  const isDone = isLast && record.isHistory !== true
  const next: ReplayRecord = {
    ...record,
    state: isDone ? 'done' : 'running',
    ended: isDone ? kept.now : undefined,
    ...(isLast && !isDone && { isPlaced: true }),
    scanned: record.scanned + judged.length,
    reached: page.items.at(-1)?.arrived ?? record.reached,
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
  if (isDone) deps.emit('replay.done', { replay: record.id, placed: next.placed })
  else await deps.publishStep(next)
}

/** Live events follow once the endpoint has got all events that were placed. */
async function endHistory(
  deps: ReplayPageDependencies,
  store: Store,
  { record, rev, now }: StoredReplay,
  run: Run,
): Promise<Ending | void> {
  if ((await countUnsent(store, record)) > 0) return waitForEndpoint(run)
  await deps.endpoints.endHistory(record.endpoint ?? '')
  if (record.state !== 'running') return
  if ((await writeReplay(store, { ...record, state: 'done', ended: now }, rev)) !== 'written') return
  deps.emit('replay.done', { replay: record.id, placed: record.placed })
}

/** Counts the replayed events that wait in the lanes of the endpoint, or are being sent. */
async function countUnsent(store: Store, { into, endpoint = '' }: ReplayRecord): Promise<number> {
  const counts = into.map(async (flow) => {
    const { item } = await store.get({ kind: 'lanes', id: laneId(flow, endpoint) })
    const run = item?.run?.rank === 1 && !item.run.isDeadLetter ? item.run.events : 0
    return (item?.replays ?? 0) + run
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

/** At most what the replay may place in a second waits in a lane, so that a cancelled replay soon stops. */
function maxUnsent({ rate, per }: ReplayRecord): number {
  return Math.min(MAX_UNSENT, Math.max(1, Math.round((rate * 1_000) / per)))
}

/** The wait grows, because an endpoint may be down for days. */
function waitForEndpoint({ state }: Run): Ending {
  const { waits = 0 } = (state ?? {}) as { readonly waits?: number }
  const after = Math.min(MAX_WAIT, MIN_WAIT * 1.5 ** Math.min(waits, 50))
  return defer({ after, why: 'The endpoint has not got the events before yet.', state: { waits: waits + 1 } })
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
  const n = Math.min(PAGE, record.rate, (record.most ?? Infinity) - record.scanned)
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
  const { endpoint, isHistory = false } = record
  // The event arrived after the endpoint, so it is one of its live events.
  if (isHistory && record.into.some((flow) => event.lanes.includes(laneId(flow, endpoint ?? ''))))
    return { kind: 'skipped' }
  if (body instanceof Error) return { kind: 'failed', error: body.message }
  if (body === undefined || event.purged) return { kind: 'gone' }
  const whole = new FlowEvent({ ...event, body })
  const placements: Placement[] = []
  for (const name of record.into) {
    const flow = deps.flows.get(name)
    if (flow === undefined) continue
    const placing = deps.placementsFor(flow, whole)
    if (placing.kind === 'unrouted')
      return { kind: 'failed', error: whole.encrypted ? ERROR_NOT_KEPT : placing.entry.error }
    if (placing.kind !== 'placed') continue
    placements.push(...placing.placements.filter(({ key }) => endpoint === undefined || key === endpoint))
  }
  if (placements.length === 0) return { kind: 'skipped' }
  const item = { kind: 'replay', replay: record.id, event: event.id, placements } as const
  return { kind: 'item', item: isHistory ? { ...item, once: true } : item }
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
