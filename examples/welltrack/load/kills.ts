// `runLoad` sends bursts with duplicates and malformed items to worker processes while it kills them, and compares the metrics with what
// was sent. It is the proof of the example and, in small, a test and what the page shows.
import { systemClock, type Millis } from 'sluice'
import { chance, type Chance } from '../kit/chance.ts'
import { serveHandler } from '../kit/http.ts'
import { Workers } from '../kit/workers.ts'
import { openDatabase } from './data/database.ts'
import { mapGarmin } from './domain/garmin.ts'
import { dedupeHash } from './domain/metric.ts'
import { SHORT_TIMES } from './scenarios/world.ts'
import { GarminStandIn, type Item, type PushType } from './stand-in/garmin.ts'
import { dailies, garminActivity, sleep, stress, userMetrics } from './stand-in/payloads.ts'
import { StravaStandIn } from './stand-in/strava.ts'

export interface LoadOptions {
  /** The address of the store. */
  readonly store: string
  readonly seed: number
  readonly items: number
  readonly activities: number
  readonly workers: number
  readonly kills: number
  readonly progress: (text: string) => void
}

export interface LoadFigures {
  readonly sent: number
  readonly duplicates: number
  readonly malformed: number
  readonly killed: number
  /** Metrics that should be there, are there, have another value, or should not be there. */
  readonly wanted: number
  readonly found: number
  readonly wrong: number
  readonly extra: number
  readonly deadLetters: number
  readonly withoutReason: number
  readonly activities: number
  readonly exceeded: number
  readonly p99: Millis
  readonly seconds: number
}

interface Sent {
  readonly person: string
  readonly type: PushType
  readonly item: Item
}

const SUMMARIES = { sleeps: sleep, dailies, stressDetails: stress, userMetrics, activities: garminActivity } as const
const TYPES = Object.keys(SUMMARIES) as readonly (keyof typeof SUMMARIES)[]
const PEOPLE = 40
const ATHLETES = 4
const PER_PUSH = 40
const PUSHES_AT_ONCE = 6
const STRAVA = { quarterHour: 20, day: 100_000, window: 5_000 }

export async function runLoad(options: LoadOptions): Promise<LoadFigures> {
  const began = systemClock.monotonic()
  const garmin = new GarminStandIn(systemClock, 200)
  const strava = new StravaStandIn(systemClock, STRAVA)
  const served = {
    garmin: await serveHandler(garmin.handle),
    strava: await serveHandler(strava.handle),
    notify: await serveHandler(() => new Response('')),
    sentry: await serveHandler(() => Response.json({})),
  }
  const env = {
    ...SHORT_TIMES,
    STRAVA_PER_15_MINUTES: String(STRAVA.quarterHour),
    STRAVA_PER_DAY: String(STRAVA.day),
    STRAVA_WINDOW_MS: String(STRAVA.window),
  }
  const urls = Object.fromEntries(Object.entries(served).map(([name, { url }]) => [name, url]))
  const main = import.meta.resolve('./main.ts')
  const workers = new Workers({ main, store: options.store, env, urls })
  const send = (path: string, init?: RequestInit): Promise<Response> => fetch(workers.url + path, init)
  const get = async <T>(path: string): Promise<T> => (await (await send(path)).json()) as T
  try {
    await workers.start(options.workers)
    await connectEverybody(send, strava)
    const random = chance(options.seed)
    const plan = planItems(options.items, random)
    const told = tellStrava(strava, send, options.activities)
    const isIdle = async (flow: string | undefined): Promise<boolean> => {
      const { items } = await get<{ items: { flow: string; lanes: number }[] }>('/v1/flows')
      return items.every((one) => one.lanes === 0 || (flow !== undefined && one.flow !== flow))
    }
    // A burst, a kill in the middle of it, and the next burst when its items are done.
    const size = Math.ceil(plan.pushes.length / (options.kills + 1))
    for (let from = 0; from < plan.pushes.length; from += size) {
      const before = garmin.statuses.length
      const burst = pushAll(garmin, send, plan.pushes.slice(from, from + size))
      if (workers.killed < options.kills) {
        await eventually(async () => garmin.statuses.length > before)
        await workers.kill()
        await workers.start()
      }
      await burst
      await eventually(() => isIdle('garmin-metrics'))
      options.progress(
        `${Math.min(from + size, plan.pushes.length)} pushes are done, ${workers.killed} workers were killed`,
      )
    }
    await told
    await eventually(() => isIdle(undefined))
    const letters = await get<{ items: { reason: string }[] }>('/v1/dead-letters?limit=1000')
    const database = openDatabase(options.store)
    const rows = await database.rows("select dedupe_hash, value_num from wt_health_metrics where source = 'garmin'")
    const fetched = await database.rows("select count(*) as n from wt_health_metrics where source = 'strava'")
    const found = new Map(rows.map((row) => [String(row['dedupe_hash']), Number(row['value_num'])]))
    const wrong = [...plan.wanted].filter(([hash, value]) => found.get(hash) !== value).length
    const extra = [...found.keys()].filter((hash) => !plan.wanted.has(hash)).length
    const latencies = garmin.latencies.toSorted((one, other) => one - other)
    return {
      sent: plan.sent,
      duplicates: plan.duplicates,
      malformed: plan.malformed,
      killed: workers.killed,
      wanted: plan.wanted.size,
      found: found.size,
      wrong,
      extra,
      deadLetters: letters.items.length,
      withoutReason: letters.items.filter(({ reason }) => !/no |not a|neither|none of/.test(reason)).length,
      activities: Number(fetched[0]?.['n']),
      exceeded: strava.exceeded,
      p99: Math.round(latencies[Math.floor(latencies.length * 0.99)] ?? 0),
      seconds: Math.round((systemClock.monotonic() - began) / 1_000),
    }
  } finally {
    await workers.stop()
    await Promise.all(Object.values(served).map((one) => one.close()))
  }
}

interface Plan {
  readonly pushes: readonly (readonly Sent[])[]
  readonly wanted: ReadonlyMap<string, number>
  readonly sent: number
  readonly duplicates: number
  readonly malformed: number
}

/** A third of the items come again with fuller data, a tenth come twice, and two of a hundred are malformed. */
function planItems(items: number, random: Chance): Plan {
  const first: Sent[] = []
  const later: Sent[] = []
  const wanted = new Map<string, number>()
  let [n, duplicates, malformed] = [0, 0, 0]
  const keep = ({ person, type, item }: Sent): void => {
    for (const metric of mapGarmin(type, item).metrics) wanted.set(dedupeHash(person, 'garmin', metric), metric.value)
  }
  for (; first.length + later.length < items; n++) {
    const person = `person-${n % PEOPLE}`
    const type = TYPES[Math.floor(n / PEOPLE) % TYPES.length] ?? 'dailies'
    const day = -Math.floor(n / PEOPLE / TYPES.length)
    const whole = { userId: `garmin-${person}`, ...SUMMARIES[type](day) }
    if (random.hits(0.02)) {
      malformed++
      first.push({ person, type, item: { userId: whole.userId, summaryId: `malformed-${n}` } })
      continue
    }
    const early = { ...whole, ...EARLY[type] }
    const isReplaced = random.hits(1 / 3)
    first.push({ person, type, item: isReplaced ? early : whole })
    if (isReplaced) later.push({ person, type, item: whole })
    keep({ person, type, item: whole })
    if (!random.hits(0.1)) continue
    duplicates++
    first.push({ person, type, item: isReplaced ? early : whole })
  }
  return {
    pushes: [...inPushes(first), ...inPushes(later)],
    wanted,
    sent: first.length + later.length,
    duplicates,
    malformed,
  }
}

const EARLY: Readonly<Record<keyof typeof SUMMARIES, Readonly<Record<string, unknown>>>> = {
  sleeps: { durationInSeconds: 1_000 },
  dailies: { steps: 10 },
  stressDetails: { timeOffsetStressLevelValues: { '0': 1 } },
  userMetrics: { vo2Max: 1 },
  activities: { distanceInMeters: 1 },
}

/** A body has the items of many people, and of one type. */
function inPushes(all: readonly Sent[]): readonly (readonly Sent[])[] {
  return TYPES.flatMap((type) => {
    const some = all.filter((one) => one.type === type)
    return Array.from({ length: Math.ceil(some.length / PER_PUSH) }, (_, n) =>
      some.slice(n * PER_PUSH, (n + 1) * PER_PUSH),
    )
  })
}

type Send = (path: string, init?: RequestInit) => Promise<Response>

async function pushAll(garmin: GarminStandIn, send: Send, pushes: Plan['pushes']): Promise<void> {
  const queue = [...pushes]
  const one = async (): Promise<void> => {
    for (let push = queue.shift(); push !== undefined; push = queue.shift()) {
      const [first] = push
      if (first !== undefined)
        await garmin.push(
          send,
          first.type,
          push.map(({ item }) => item),
        )
    }
  }
  await Promise.all(Array.from({ length: PUSHES_AT_ONCE }, one))
}

async function tellStrava(strava: StravaStandIn, send: Send, activities: number): Promise<void> {
  for (let n = 0; n < activities; n++) {
    const id = `${5_000_000 + n}`
    strava.add(id)
    // While the only worker is being replaced, a request fails at once. Strava sends again later as well.
    await eventually(async () => (await strava.tell(send, { id, athlete: `${8_000 + (n % ATHLETES)}` })) === 200)
  }
}

async function connectEverybody(send: Send, strava: StravaStandIn): Promise<void> {
  const connect = async (body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' }
    const { status } = await send('/connections', { method: 'POST', headers, body: JSON.stringify(body) })
    if (status >= 300) throw new Error(`The app answered ${status} to a connection.`)
  }
  for (let n = 0; n < PEOPLE; n++)
    await connect({ provider: 'garmin', externalId: `garmin-person-${n}`, profileId: `person-${n}` })
  for (let n = 0; n < ATHLETES; n++) {
    const athlete = String(8_000 + n)
    await connect({
      provider: 'strava',
      externalId: athlete,
      profileId: `athlete-${n}`,
      tokens: strava.connect(athlete),
    })
  }
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds().catch(() => false))) await new Promise<void>((resolve) => void systemClock.after(100, resolve))
}
