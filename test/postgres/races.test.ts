// Six writers and three workers in three processes, on forty hot keys: whatever they do to each other, one truth is kept.
import { describe, expect, inject, it } from 'vitest'
import { race } from './race/race.ts'

const BATCHES = 90
const SEED = Number(process.env['SEED'] ?? 20_261_115)

describe.each(inject('postgresServers'))('$name', ({ url }) => {
  it(
    'six writers and three workers on forty hot keys: nothing lost, twice or stranded, no deadlock',
    { timeout: 120_000 },
    async () => {
      const figure = await race({ url, batches: BATCHES, seed: SEED })
      expect(figure).toMatchObject({ lost: [], twice: [], stranded: [], wrong: [], deadlocks: 0 })
      // They were in each other's way.
      expect(figure.stored).toBeGreaterThan(1_000)
      expect(figure.published).toBeGreaterThan(500)
      expect(figure.duplicates).toBeGreaterThan(50)
      expect(figure.dead).toBeGreaterThan(20)
      expect(figure.repeatedTurns).toBeGreaterThan(5)
      console.log(JSON.stringify(figure))
    },
  )
})
