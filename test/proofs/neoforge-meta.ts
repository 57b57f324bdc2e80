// The example app NeoForge Meta: news that are published in transactions of up to a minute, while workers are killed.
import { openPlace } from '../../examples/kit/postgres.ts'
import { runLoad } from '../../examples/neoforge-meta/load/load.ts'
import type { Figure, ProofContext } from '../../scripts/proof.ts'

export const title =
  'NeoForge Meta with 12 writers whose transactions take up to a minute, 20 subscribers of mixed health, and four workers on one ' +
  'PostgreSQL of which eight are killed: each healthy subscriber has every event that it asked for once after its consumer, all of them ' +
  'in the same order, and a batch comes again only under the same id, after a fault or a kill; the dead one has dead letters and an open breaker'

const WRITERS = 12
const SUBSCRIBERS = 20
const KILLS = 8
const MINUTE = 60_000

export async function run(context: ProofContext): Promise<Figure> {
  const place = await openPlace('postgres')
  try {
    const values = await runLoad({
      store: place.store,
      seed: context.seed,
      writers: WRITERS,
      workers: 4,
      kills: KILLS,
      ms: 3 * MINUTE,
      longest: MINUTE,
      progress: (text) => context.progress(text),
    })
    const { faults, killed, subscribers, overtaken, longestTransaction, deadLetters, repeatedAfterFault } = values
    const isHard = overtaken > 0 && longestTransaction >= MINUTE && deadLetters > 0 && repeatedAfterFault > 0
    return {
      holds: faults.length === 0 && killed === KILLS && subscribers === SUBSCRIBERS && isHard,
      values: { ...values },
    }
  } finally {
    await place.close()
  }
}
