// The example app WellTrack under load on PostgreSQL, while its workers are killed.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { openPlace } from '../../examples/kit/postgres.ts'
import { runLoad, type LoadFigures } from '../../examples/welltrack/load.ts'

export const title =
  'WellTrack with 20,000 items in bursts, with duplicates and 2 % malformed, while its workers are killed five times, on ' +
  'PostgreSQL: every valid item is in the metrics once with its newest values, the malformed ones are dead letters with reasons, and ' +
  'the stand-in for Strava never saw a budget exceeded'

export async function run(context: ProofContext): Promise<Figure> {
  const said = context.args.find((arg) => arg.startsWith('items='))?.slice('items='.length)
  const values: Record<string, LoadFigures> = {}
  for (const [name, workers] of [['postgres', 4]] as const) {
    const place = await openPlace(name)
    try {
      const { store } = place
      const { seed } = context
      values[name] = await runLoad({
        store,
        seed,
        items: Number(said ?? 20_000),
        activities: 200,
        workers,
        kills: 5,
        progress: (text) => context.progress(text),
      })
    } finally {
      await place.close()
    }
  }
  const holds = Object.values(values).every(
    ({ wrong, extra, found, wanted, deadLetters, malformed, withoutReason, exceeded, killed, activities }) =>
      [wrong, extra, withoutReason, exceeded].every((n) => n === 0) &&
      [found === wanted, deadLetters === malformed, killed === 5, activities === 200].every(Boolean),
  )
  return { holds, values }
}
