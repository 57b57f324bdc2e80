// `runLoad` lets writers publish in long transactions while workers deliver and are killed, and checks what each subscriber got. It is the
// proof of the example and, in small, a test.
import { systemClock, type Millis } from 'sluice'
import { chance } from '../../kit/chance.ts'
import { Stage } from '../../kit/stage.ts'
import { VersionsTable } from '../data/versions-table.ts'
import { neoforgeMeta } from '../example.ts'
import { SHORT_TIMES, type World } from '../scenarios/world.ts'
import { makeSubscribers, type LoadSubscriber } from './subscribers.ts'
import { Writer, type Committed } from './writers.ts'

export interface LoadOptions {
  /** The address of the store. */
  readonly store: string
  readonly seed: number
  readonly writers: number
  readonly workers: number
  readonly kills: number
  /** How long transactions begin. */
  readonly ms: Millis
  /** The longest transaction. */
  readonly longest: Millis
  readonly progress: (text: string) => void
}

/** The faults are sentences; none is expected. */
export interface LoadFigures {
  readonly faults: readonly string[]
  readonly transactions: number
  readonly longestTransaction: Millis
  /** Transactions that began before an event was delivered, and were committed afterwards. */
  readonly overtaken: number
  readonly events: number
  readonly rolledBack: number
  readonly subscribers: number
  readonly handled: number
  readonly posts: number
  /** Batches that came again although the subscriber had accepted them: a worker was killed in between. */
  readonly repeatedAfterKill: number
  /** Batches that came again because their answer was an error or was cut off. */
  readonly repeatedAfterFault: number
  readonly killed: number
  readonly deadLetters: number
  readonly breaker: string
  readonly seconds: number
}

const ENV = {
  ...SHORT_TIMES,
  WEBHOOK_PROOF: 'none',
  // Nothing is discovered: the writers make the news.
  DISCOVERY_INTERVAL: '3650d',
  BATCH_INTERVAL: '1s',
  RETRY_FIRST: '500ms',
  REQUEST_TIMEOUT: '10s',
  MAX_EVENTS_PER_BATCH: '50',
}

/** Long enough for a busy machine: the fourth lapse of a run would make it a dead letter. */
const LEASES = { lease: '15s', heartbeat: '5s' } as const

export async function runLoad(options: LoadOptions): Promise<LoadFigures> {
  const { store, seed, workers, progress } = options
  const began = systemClock.monotonic()
  // The table is there before the first of twelve writers.
  await new VersionsTable({ store, watch: (client) => client }).transaction(async () => {})
  const stage = await Stage.open({ ...neoforgeMeta, env: ENV, options: LEASES }, { store, workers })
  const subscribers = makeSubscribers(chance(seed))
  try {
    const ids = new Map<LoadSubscriber, string>()
    for (const one of subscribers) ids.set(one, (await stage.app.endpoints.create(await one.start())).id)
    const written = await write(stage, options)
    const { committed, rolledBack } = written
    const wanted = new Map(subscribers.map((one) => [one, wantedBy(one, committed)]))
    progress(`${committed.length} transactions are committed; waiting for the subscribers`)
    const healthy = subscribers.filter((one) => !one.isDead)
    const isDone = (): boolean => healthy.every((one) => one.handled.length >= (wanted.get(one)?.size ?? 0))
    await stage.until('every healthy subscriber has its events', isDone, 120_000).catch(() => {})
    // Time for what should not come any more.
    await stage.sleep(5_000)
    const arrival = arrivalOrder(subscribers)
    const dead = await judgeDead(stage, subscribers, ids, wanted)
    const posts = subscribers.flatMap((one) => one.posts)
    return {
      faults: [
        ...healthy.flatMap((one) => faultsOf(one, { wanted: wanted.get(one) ?? new Set(), arrival, written })),
        ...committed.flatMap((one) => disordered(one, arrival)),
        ...dead.faults,
      ],
      transactions: committed.length,
      longestTransaction: Math.round(Math.max(...committed.map((one) => one.ended - one.began))),
      overtaken: countOvertaken(committed, subscribers),
      events: committed.reduce((sum, one) => sum + one.events.length, 0),
      rolledBack: rolledBack.size,
      subscribers: subscribers.length,
      handled: healthy.reduce((sum, one) => sum + one.handled.length, 0),
      posts: posts.length,
      repeatedAfterKill: healthy.reduce((sum, one) => sum + repeats(one, 'accepted').length, 0),
      repeatedAfterFault: healthy.reduce((sum, one) => sum + repeats(one, 'cut', 'refused').length, 0),
      killed: stage.workers.killed,
      deadLetters: dead.deadLetters,
      breaker: dead.breaker,
      seconds: Math.round((systemClock.monotonic() - began) / 1_000),
    }
  } finally {
    await stage.close()
    for (const one of subscribers) one.stop()
  }
}

interface Written {
  readonly committed: readonly Committed[]
  readonly rolledBack: ReadonlySet<string>
  /** The times of the kills. */
  readonly kills: readonly Millis[]
}

async function write({ app, workers }: Stage<World>, options: LoadOptions): Promise<Written> {
  const { store, seed, ms, longest, progress } = options
  const until = systemClock.monotonic() + ms
  const writers = Array.from({ length: options.writers }, (_, n) => {
    return new Writer(`w${n}`, { store, app, chance: chance(seed * 100 + n), until, longest })
  })
  const writing = Promise.all(writers.map((one, n) => one.run(n % 4 === 0)))
  const kills: Millis[] = []
  for (let n = 1; n <= options.kills; n++) {
    const at = until - ms + (n * ms) / (options.kills + 1)
    await new Promise<void>((resolve) => void systemClock.after(at - systemClock.monotonic(), resolve))
    await workers.killBusy()
    kills.push(systemClock.monotonic())
    await workers.start()
    progress(`${n} workers are killed`)
  }
  await writing
  return {
    committed: writers.flatMap((one) => one.committed),
    rolledBack: new Set(writers.flatMap((one) => one.rolledBack)),
    kills,
  }
}

function wantedBy(
  { wish: { types, component } }: LoadSubscriber,
  committed: readonly Committed[],
): ReadonlySet<string> {
  const wanted = committed
    .flatMap(({ events }) => events)
    .filter((event) => types?.includes(event.type) !== false && (component ?? event.component) === event.component)
  return new Set(wanted.map(({ id }) => id))
}

/** The number of each event in the order in which a subscriber to everything got them. All others must have the same order. */
function arrivalOrder(subscribers: readonly LoadSubscriber[]): ReadonlyMap<string, number> {
  const all = subscribers.find(({ name }) => name === 'steady-0')
  return new Map(all?.handled.map((id, at) => [id, at]))
}

interface Expected {
  readonly wanted: ReadonlySet<string>
  readonly arrival: ReadonlyMap<string, number>
  readonly written: Written
}

function faultsOf(subscriber: LoadSubscriber, { wanted, arrival, written }: Expected): readonly string[] {
  const { kills, rolledBack } = written
  const { handled, posts } = subscriber
  const times = Map.groupBy(handled, (id) => id)
  const batches = new Map<string, string>()
  const faults = [
    ...[...wanted].filter((id) => !times.has(id)).map((id) => `${id} is missing`),
    ...[...times].filter(([, all]) => all.length > 1).map(([id]) => `${id} was handled twice`),
    ...handled
      .filter((id) => !wanted.has(id))
      .map((id) => `${id} was ${rolledBack.has(id) ? 'rolled back' : 'not asked for'}`),
    ...handled
      .slice(1)
      .filter((id, n) => (arrival.get(id) ?? -1) < (arrival.get(handled[n] ?? '') ?? -1))
      .map((id) => `${id} came out of order`),
    ...posts.flatMap(({ events, batch }) =>
      events.flatMap((id) => {
        const before = batches.get(id) ?? batch
        batches.set(id, batch)
        return before === batch ? [] : [`${id} came again in another batch`]
      }),
    ),
    ...repeats(subscriber, 'accepted')
      .filter(([from, to]) => !kills.some((at) => at > from && at < to))
      .map(() => 'a batch came again, although its answer was heard'),
  ]
  return faults.map((fault) => `${subscriber.name}: ${fault}`)
}

/** The times of two attempts for the same batch, the first of which ended so. */
function repeats({ posts }: LoadSubscriber, ...ends: readonly string[]): readonly (readonly [Millis, Millis])[] {
  return [...Map.groupBy(posts, ({ batch }) => batch).values()].flatMap((attempts) =>
    attempts.slice(1).flatMap((next, n) => {
      const before = attempts[n]
      return before !== undefined && ends.includes(before.end) ? [[before.at, next.at] as const] : []
    }),
  )
}

/** Events of one transaction keep their order. */
function disordered({ events }: Committed, arrival: ReadonlyMap<string, number>): readonly string[] {
  const places = events.map(({ id }) => arrival.get(id) ?? -1)
  return places.some((place, n) => n > 0 && place < (places[n - 1] ?? 0)) ? ['a transaction lost its order'] : []
}

function countOvertaken(committed: readonly Committed[], subscribers: readonly LoadSubscriber[]): number {
  const beginnings = new Map(committed.flatMap(({ began, events }) => events.map(({ id }) => [id, began] as const)))
  const deliveries = subscribers.flatMap(({ posts }) =>
    posts.flatMap(({ events, at }) => events.map((id) => ({ began: beginnings.get(id) ?? 0, at }))),
  )
  return committed.filter(({ began, ended }) => deliveries.some((one) => one.began > began && one.at < ended)).length
}

interface DeadFigures {
  readonly deadLetters: number
  readonly breaker: string
  readonly faults: readonly string[]
}

/** What the dead subscriber asked for is in dead letters, or waits. */
async function judgeDead(
  { app }: Stage<World>,
  subscribers: readonly LoadSubscriber[],
  ids: ReadonlyMap<LoadSubscriber, string>,
  wanted: ReadonlyMap<LoadSubscriber, ReadonlySet<string>>,
): Promise<DeadFigures> {
  const dead = subscribers.find((one) => one.isDead)
  const id = dead === undefined ? undefined : ids.get(dead)
  if (dead === undefined || id === undefined) throw new Error('There must be a dead subscriber.')
  const { items } = await app.admin.deadLetters.list({})
  const { items: own } = await app.admin.deadLetters.list({ flow: 'versions', key: id })
  const lane = await app.admin.lanes.get('versions', id)
  const kept = own.reduce((sum, { events }) => sum + events.length, 0) + (lane?.waiting ?? 0) + (lane?.run?.events ?? 0)
  const size = wanted.get(dead)?.size ?? 0
  const breaker = (await app.endpoints.get(id))?.health.breaker ?? 'none'
  return {
    deadLetters: own.length,
    breaker,
    faults: [
      ...(kept === size ? [] : [`the dead one has ${kept} of ${size} events in dead letters and waiting`]),
      ...(items.length === own.length ? [] : ['a healthy one has a dead letter']),
      ...(breaker === 'closed' ? ['the breaker of the dead one is closed'] : []),
    ],
  }
}
