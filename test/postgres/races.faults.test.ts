// Six writers and three workers in three processes, on forty hot keys: the store stays consistent under every interleaving.
import { describe, expect, inject, it } from 'vitest'
import { race } from './race/race.ts'

const BATCHES = 90
const SEED = Number(process.env['SEED'] ?? 20_261_115)

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it(
    'six writers and three workers on forty hot keys lose, repeat and strand nothing, without a deadlock',
    { timeout: 400_000 },
    async () => {
      const figure = await race({ url, batches: BATCHES, seed: SEED })
      expect(figure).toMatchObject({ lost: [], twice: [], stranded: [], wrong: [], deadlocks: 0 })
      // The processes did conflict.
      for (const count of ['stored', 'published', 'duplicates', 'dead', 'repeatedTurns'] as const) {
        expect(figure[count], count).toBeGreaterThan(0)
      }
    },
  )
})
