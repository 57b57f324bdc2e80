// `runLoad` sends bursts with duplicates and malformed items to worker processes while it kills them, and compares the metrics with what
// was sent. It is a part of the proof of the example and, in small, a test.
import { systemClock, type Millis } from 'sluice'
import { chance } from '../../kit/chance.ts'
import { openDatabase } from '../../kit/database.ts'
import { DATABASE } from '../data/schema.ts'
import { compareMetrics, type Comparison } from './compare.ts'
import { Crew, percentile } from './crew.ts'
import { eventually, tellStrava } from './people.ts'
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

export interface LoadFigures extends Comparison {
  readonly sent: number
  readonly duplicates: number
  readonly malformed: number
  readonly killed: number
  readonly deadLetters: number
  readonly withoutReason: number
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
    const told = tellStrava(crew, { activities: options.activities })
    await pushInBursts(crew, plan, options)
    await told
    await crew.idle()
    const deadLetters = await readDeadLetters(crew)
    const { garmin, strava, workers } = crew
    return {
      sent: plan.sent,
      duplicates: plan.duplicates,
      malformed: plan.malformed,
      killed: workers.killed,
      ...(await compareMetrics(openDatabase(options.store, DATABASE), plan.wanted)),
      deadLetters: deadLetters.length,
      withoutReason: deadLetters.filter((reason) => !/no |not a|neither|none of/.test(reason)).length,
      exceeded: strava.exceeded,
      p99: percentile(garmin.latencies, 0.99),
      seconds: Math.round((systemClock.monotonic() - began) / 1_000),
    }
  } finally {
    await crew.stop()
  }
}

/** The next burst begins when the items of the one before are done. The last ones have a kill in the middle. */
async function pushInBursts(crew: Crew, { waves }: Plan, { kills, progress }: LoadOptions): Promise<void> {
  const { garmin, workers } = crew
  const size = Math.ceil(waves.flat().length / (kills + 1))
  const bursts = waves.flatMap((wave) =>
    Array.from({ length: Math.ceil(wave.length / size) }, (_, n) => wave.slice(n * size, (n + 1) * size)),
  )
  for (const [n, burst] of bursts.entries()) {
    const before = garmin.statuses.length
    const pushing = crew.push(burst)
    if (n >= bursts.length - kills) {
      await eventually(async () => garmin.statuses.length > before)
      await workers.replace()
    }
    await pushing
    await crew.idle('garmin-metrics')
    progress(`${n + 1} of ${bursts.length} bursts are done, ${workers.killed} workers were killed`)
  }
}

async function readDeadLetters(crew: Crew): Promise<readonly string[]> {
  const { items } = await crew.get<{ items: { reason: string }[] }>('/v1/dead-letters?limit=1000')
  return items.map(({ reason }) => reason)
}
