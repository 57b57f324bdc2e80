// `loadPage` is the page of --serve: it sends bursts, kills workers, and shows that nothing is lost.
import type { Millis } from 'sluice'
import { chance } from '../../kit/chance.ts'
import { openDatabase } from '../../kit/database.ts'
import type { Page } from '../../kit/live-page.ts'
import type { Stage } from '../../kit/stage.ts'
import { DATABASE } from '../data/schema.ts'
import type { World } from '../scenarios/world.ts'
import { compareMetrics, countMetrics } from './compare.ts'
import { percentile } from './crew.ts'
import { connectEverybody, pushAll, tellStrava } from './people.ts'
import { planItems } from './plan.ts'

const ITEMS = 1_000
const ACTIVITIES = 10
const PER_PUSH = 40
/** Each burst is about days of its own. */
const DAYS = 1_000
const ANSWERS = 1_000
const EVERY: Millis = 500

interface Counts {
  readonly metrics: number
  readonly fetched: number
  readonly lanes: number
  readonly deadLetters: number
  readonly verdict: { readonly holds: boolean | null; readonly text: string }
}

export function loadPage(stage: Stage<World>): Page {
  const { garmin, strava } = stage.world
  const { send, workers, clock } = stage
  const people = { garmin, strava, send }
  const database = openDatabase(stage.store, DATABASE)
  const random = chance(1)
  const wanted = new Map<string, number>()
  const sum = { bursts: 0, sent: 0, malformed: 0, activities: 0 }
  let [isConnected, isPushing] = [false, false]

  const burst = async (): Promise<void> => {
    if (isPushing) return
    isPushing = true
    try {
      if (!isConnected) await connectEverybody(people)
      isConnected = true
      const plan = planItems({ items: ITEMS, chance: random, perPush: PER_PUSH, from: -DAYS * sum.bursts++ })
      for (const [hash, value] of plan.wanted) wanted.set(hash, value)
      sum.sent += plan.sent
      sum.malformed += plan.malformed
      const told = tellStrava(people, { activities: ACTIVITIES, from: sum.activities })
      sum.activities += ACTIVITIES
      for (const wave of plan.waves) await pushAll(people, wave)
      await told
    } finally {
      isPushing = false
    }
  }

  const count = async (): Promise<Counts> => {
    const { admin } = stage.app
    const flows = await admin.flows.list()
    const lanes = flows.reduce((all, flow) => all + flow.lanes, 0)
    const deadLetters = await admin.deadLetters.count({ flow: 'garmin-metrics' })
    const [metrics, fetched] = [await countMetrics(database, 'garmin'), await countMetrics(database, 'strava')]
    return { metrics, fetched, lanes, deadLetters, verdict: await judge(lanes, deadLetters) }
  }

  /** Once everything is done, each metric is compared. */
  const judge = async (lanes: number, deadLetters: number): Promise<Counts['verdict']> => {
    if (sum.sent === 0 || isPushing || lanes > 0) return { holds: null, text: '' }
    const { wrong, extra, found, activities } = await compareMetrics(database, wanted)
    const faults = [
      wrong > 0 && `${wrong} metrics are missing or old`,
      extra > 0 && `${extra} metrics should not be there`,
      deadLetters !== sum.malformed && `${sum.malformed} items are malformed, but ${deadLetters} are dead letters`,
      activities !== sum.activities && `${activities} of ${sum.activities} activities are there`,
    ].filter((fault) => fault !== false)
    if (faults.length > 0) return { holds: false, text: `${faults.join('; ')}.` }
    const text = `Nothing is lost: all ${found.toLocaleString('en')} metrics are there once, with their newest values.`
    return { holds: true, text }
  }

  let [counts, counted] = [count(), clock.monotonic()]
  return {
    folder: new URL('../page/', import.meta.url),
    async state() {
      if (clock.monotonic() - counted > EVERY) [counts, counted] = [count(), clock.monotonic()]
      return {
        ...sum,
        ...(await counts),
        pushing: isPushing,
        wanted: wanted.size,
        p99: garmin.latencies.length === 0 ? null : percentile(garmin.latencies.slice(-ANSWERS), 0.99),
        exceeded: strava.exceeded,
        killed: workers.killed,
      }
    },
    actions: { burst, kill: () => workers.replace() },
  }
}
