// The example app WellTrack under load on SQLite and on PostgreSQL: while its workers are killed, and for the time of its answers.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { openPlace } from '../../examples/kit/postgres.ts'
import { measureAnswers, type AnswerFigures } from '../../examples/welltrack/load/answers.ts'
import { runLoad, type LoadFigures } from '../../examples/welltrack/load/kills.ts'

export const title =
  'WellTrack with 20,000 items in bursts, with duplicates and 2 % malformed, while its workers are killed five times, on SQLite and on ' +
  'PostgreSQL: every valid item is in the metrics once with its newest values, the malformed ones are dead letters with reasons, and ' +
  'the stand-in for Strava never saw a budget exceeded. At 80 % of the rate that reaches the metrics, 99 % of the answers take ' +
  'under 500 ms'

/** SQLite takes one process. */
const STORES = [
  { name: 'sqlite', workers: 1, answering: 1 },
  { name: 'postgres', workers: 4, answering: 2 },
] as const
const ACTIVITIES = 200
const KILLS = 5
const P99 = 500

interface Done {
  readonly load: LoadFigures
  readonly answers: AnswerFigures
}

export async function run(context: ProofContext): Promise<Figure> {
  const said = context.args.find((arg) => arg.startsWith('items='))?.slice('items='.length)
  const items = Number(said ?? 20_000)
  const values: Record<string, Done> = { ...context.resume<Record<string, Done>>() }
  for (const { name, workers, answering } of STORES) {
    if (values[name] !== undefined) continue
    const progress = (text: string): void => context.progress(`${name}: ${text}`)
    const { seed } = context
    const load = await onStore(name, (store) =>
      runLoad({ store, seed, items, activities: ACTIVITIES, workers, kills: KILLS, progress }),
    )
    const answers = await onStore(name, (store) =>
      measureAnswers({ store, seed, items: items / 2, workers: answering, during: 30_000, progress }),
    )
    values[name] = { load, answers }
    context.checkpoint(values)
  }
  return { holds: Object.values(values).every(isAsClaimed), values }
}

/** Each part has a store of its own. */
async function onStore<T>(name: string, part: (store: string) => Promise<T>): Promise<T> {
  const place = await openPlace(name)
  try {
    return await part(place.store)
  } finally {
    await place.close()
  }
}

function isAsClaimed({ load, answers }: Done): boolean {
  const { wrong, extra, withoutReason, exceeded, found, wanted, deadLetters, malformed, killed, activities } = load
  return (
    [wrong, extra, withoutReason, exceeded, answers.not200].every((n) => n === 0) &&
    [found === wanted, deadLetters === malformed, killed === KILLS, activities === ACTIVITIES].every(Boolean) &&
    answers.p99 < P99
  )
}
