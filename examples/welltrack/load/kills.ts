// `runLoad` sends bursts with duplicates and malformed items to worker processes while it kills them, and compares the metrics with what
// was sent. It is a part of the proof of the example and, in small, a test.
import { systemClock, type Millis } from 'sluice'
import { chance } from '../../kit/chance.ts'
import { openDatabase } from '../../kit/database.ts'
import { DATABASE } from '../data/schema.ts'
import { ATHLETES, Crew, eventually, percentile } from './crew.ts'
import { planItems, type Plan } from './plan.ts'

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

const PER_PUSH = 40

export async function runLoad(options: LoadOptions): Promise<LoadFigures> {
  const began = systemClock.monotonic()
  const crew = await Crew.start(options.store, options.workers)
  try {
    const plan = planItems({ items: options.items, chance: chance(options.seed), perPush: PER_PUSH })
    const told = tellStrava(crew, options.activities)
    await burst(crew, plan, options)
    await told
    await crew.idle()
    const letters = await readDeadLetters(crew)
    const { garmin, strava, workers } = crew
    return {
      sent: plan.sent,
      duplicates: plan.duplicates,
      malformed: plan.malformed,
      killed: workers.killed,
      ...(await compareMetrics(options.store, plan)),
      deadLetters: letters.length,
      withoutReason: letters.filter((reason) => !/no |not a|neither|none of/.test(reason)).length,
      exceeded: strava.exceeded,
      p99: percentile(garmin.latencies, 0.99),
      seconds: Math.round((systemClock.monotonic() - began) / 1_000),
    }
  } finally {
    await crew.stop()
  }
}

/** A burst, a kill in the middle of it, and the next burst when its items are done. */
async function burst(crew: Crew, { pushes }: Plan, { kills, progress }: LoadOptions): Promise<void> {
  const { garmin, workers } = crew
  const size = Math.ceil(pushes.length / (kills + 1))
  for (let from = 0; from < pushes.length; from += size) {
    const before = garmin.statuses.length
    const pushing = crew.push(pushes.slice(from, from + size))
    if (workers.killed < kills) {
      await eventually(async () => garmin.statuses.length > before)
      await workers.kill()
      await workers.start()
    }
    await pushing
    await crew.idle('garmin-metrics')
    progress(`${Math.min(from + size, pushes.length)} pushes are done, ${workers.killed} workers were killed`)
  }
}

async function readDeadLetters(crew: Crew): Promise<readonly string[]> {
  const { items } = await crew.get<{ items: { reason: string }[] }>('/v1/dead-letters?limit=1000')
  return items.map(({ reason }) => reason)
}

async function compareMetrics(
  store: string,
  { wanted }: Plan,
): Promise<Pick<LoadFigures, 'wanted' | 'found' | 'wrong' | 'extra' | 'activities'>> {
  const database = openDatabase(store, DATABASE)
  const rows = await database.rows("select dedupe_hash, value_num from wt_health_metrics where source = 'garmin'")
  const fetched = await database.rows("select count(*) as n from wt_health_metrics where source = 'strava'")
  const found = new Map(rows.map((row) => [String(row['dedupe_hash']), Number(row['value_num'])]))
  return {
    wanted: wanted.size,
    found: found.size,
    wrong: [...wanted].filter(([hash, value]) => found.get(hash) !== value).length,
    extra: [...found.keys()].filter((hash) => !wanted.has(hash)).length,
    activities: Number(fetched[0]?.['n']),
  }
}

async function tellStrava({ strava, send }: Crew, activities: number): Promise<void> {
  for (let n = 0; n < activities; n++) {
    const id = `${5_000_000 + n}`
    strava.add(id)
    await eventually(async () => (await strava.tell(send, { id, athlete: `${8_000 + (n % ATHLETES)}` })) === 200)
  }
}
