// What a replay would do, before it starts: how many events it reads, and what each flow makes of a sample of the newest ones.
import type { Clock, Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import { FlowEvent } from '../model/flow-event.ts'
import { placementsIn, type Routes } from '../publish/route.ts'
import type { CountReply, EventRecord, RecordFilter, Store } from '../store/contract/index.ts'

export interface ReplayPlan {
  readonly count: number
  /** False if there are more events than were counted. */
  readonly exact: boolean
  /** The size of the bodies, scaled from the sample. */
  readonly bytes: number
  /** The arrivals of the oldest and the newest matching event. */
  readonly oldest: Millis | undefined
  readonly newest: Millis | undefined
  readonly flows: readonly PlannedFlow[]
}

/** What one flow would do with the events, scaled from the `sampled` ones. Lanes are those of the sample. */
interface PlannedFlow {
  readonly flow: string
  readonly placed: number
  /** The flow wants the event, but finds no key in it. */
  readonly skipped: number
  readonly unwanted: number
  readonly failed: number
  readonly lanes: number
  readonly sampled: number
}

interface PlanCall {
  readonly store: Store
  readonly clock: Clock
  readonly filter: RecordFilter
  /** Set if the replay is for one event alone. */
  readonly event: string | undefined
  readonly flows: readonly Flow[]
}

const MAX_SAMPLED = 500
const MAX_BYTES = 4 * 1024 * 1024
const COUNT_BATCH = 10_000
const MAX_MS: Millis = 40

/** A plan asks the flows as the replay would, but reports nothing and reads no pressure. */
const QUIET_ROUTES: Routes = { flows: [], foreign: [], pressureLevel: () => 0, measure: (_flow, call) => call() }

export async function planReplay(call: PlanCall): Promise<ReplayPlan> {
  const { store, filter, event } = call
  const [{ items }, oldest, counted] =
    event === undefined
      ? await Promise.all([
          store.find({ kind: 'events', filter, cursor: '', n: MAX_SAMPLED }),
          store.find({ kind: 'events', filter, cursor: '', n: 1, oldestFirst: true }),
          countBounded(call),
        ])
      : await readOne(store, event)
  const sample = takeWithin(items, MAX_BYTES)
  const { bodies } = await store.readBodies({ events: sample.map(({ id }) => id) })
  const events = sample.flatMap((one, n) => {
    const body = bodies[n]
    return body === undefined ? [] : new FlowEvent({ ...one, body })
  })
  const scale = events.length === 0 ? 0 : counted.count / events.length
  const bytes = items.reduce((sum, { size }) => sum + size, 0) * (items.length === 0 ? 0 : counted.count / items.length)
  return {
    ...counted,
    bytes: Math.round(bytes),
    oldest: oldest.items[0]?.arrived,
    newest: items[0]?.arrived,
    flows: call.flows.map((flow) => planFlow(flow, events, scale)),
  }
}

interface OneEvent {
  readonly items: readonly EventRecord[]
}

async function readOne(
  store: Store,
  id: string,
): Promise<readonly [OneEvent, OneEvent, Pick<ReplayPlan, 'count' | 'exact'>]> {
  const { item } = await store.get({ kind: 'events', id })
  const found = { items: item === undefined ? [] : [item] }
  return [found, found, { count: found.items.length, exact: true }]
}

async function countBounded({ store, clock, filter }: PlanCall): Promise<Pick<ReplayPlan, 'count' | 'exact'>> {
  const startedAt = clock.monotonic()
  let count = 0
  let cursor: string | undefined = ''
  while (cursor !== undefined && (count === 0 || clock.monotonic() - startedAt <= MAX_MS)) {
    const reply: CountReply = await store.count({ kind: 'events', filter, cursor, atMost: COUNT_BATCH })
    count += reply.count
    cursor = reply.next
  }
  return { count, exact: cursor === undefined }
}

/** Returns the first events whose bodies together have at most this size, and at least one. */
function takeWithin(events: readonly EventRecord[], bytes: number): readonly EventRecord[] {
  let left = bytes
  return events.filter(({ size }, n) => {
    left -= size
    return n === 0 || left >= 0
  })
}

function planFlow(flow: Flow, events: readonly FlowEvent[], scale: number): PlannedFlow {
  const lanes = new Set<string>()
  const counts = { placed: 0, skipped: 0, unwanted: 0, unrouted: 0 }
  for (const event of events) {
    const routed = placementsIn(flow, event, QUIET_ROUTES)
    counts[routed.kind]++
    if (routed.kind === 'placed') for (const { lane } of routed.placements) lanes.add(lane)
  }
  const toAll = (n: number): number => Math.round(n * scale)
  return {
    flow: flow.name,
    placed: toAll(counts.placed),
    skipped: toAll(counts.skipped),
    unwanted: toAll(counts.unwanted),
    failed: toAll(counts.unrouted),
    lanes: lanes.size,
    sampled: events.length,
  }
}
