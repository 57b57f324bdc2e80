// Six writers and three workers in three processes, on forty hot keys: the store stays consistent under every interleaving.
import { expect, inject, test } from 'vitest'
import { raceOn } from '../postgres/race/race.ts'

const BATCHES = 90
const SEED = Number(process.env['SEED'] ?? 20_261_115)

test(
  'six writers and three workers on forty hot keys lose, repeat and strand nothing',
  { timeout: 400_000 },
  async () => {
    const figure = await raceOn(`${inject('redisUrl')}?prefix=race-${process.pid}-${SEED}`, {
      batches: BATCHES,
      seed: SEED,
    })
    expect(figure).toMatchObject({ lost: [], twice: [], stranded: [], wrong: [] })
    // The processes did conflict.
    for (const count of ['stored', 'published', 'duplicates', 'dead', 'repeatedTurns'] as const) {
      expect(figure[count], count).toBeGreaterThan(0)
    }
  },
)
