// The dashboard of an app with many events and lanes, while a visitor goes through all of its pages.
import { openPlace } from '../../examples/kit/postgres.ts'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { MOST_MS, visit, type VisitFigures } from '../dashboard/load/measure.ts'
import { Chance } from '../sqlite/kill-load.ts'

export const title =
  'With 100,000 events and 20,000 lanes stored and 200 events a second flowing, 95 % of the interactions with the dashboard are ' +
  'answered in under 100 ms, and its JavaScript heap stays under 100 MB over ten minutes, on SQLite and on PostgreSQL'

const LOAD = { events: 100_000, lanes: 20_000, deadLetters: 500, perSecond: 200 }
const MOST_HEAP_MB = 100

export async function run(context: ProofContext): Promise<Figure> {
  const given = new Map(context.args.map((arg) => arg.split('=', 2) as [string, string]))
  const minutes = Number(given.get('minutes') ?? 10)
  const stores = given.get('stores')?.split(',') ?? ['sqlite', 'postgres']
  const values: Record<string, VisitFigures> = { ...context.resume<Record<string, VisitFigures>>() }
  for (const name of stores) {
    if (values[name] !== undefined) continue
    const progress = (text: string): void => context.progress(`${name}: ${text}`)
    const place = await openPlace(name)
    try {
      values[name] = await visit({
        store: place.store,
        load: LOAD,
        minutes,
        chance: new Chance(context.seed),
        progress,
      })
    } finally {
      await place.close()
    }
    context.checkpoint(values)
  }
  return { holds: Object.values(values).every(isAsClaimed), values }
}

function isAsClaimed({ p95Ms, heapMb, errors, publishedPerSecond }: VisitFigures): boolean {
  return p95Ms < MOST_MS && heapMb < MOST_HEAP_MB && errors.length === 0 && publishedPerSecond >= LOAD.perSecond * 0.99
}
