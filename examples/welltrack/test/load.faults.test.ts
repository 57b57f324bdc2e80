// The short form of `npm run prove -- welltrack`: bursts with duplicates and malformed items, and workers that are killed five times.
import { expect, it } from 'vitest'
import { openPlace } from '../../kit/postgres.ts'
import { runLoad } from '../load/kills.ts'

it.each([
  ['sqlite', 1],
  ['postgres', 3],
] as const)(
  'every valid item is in the metrics once with its newest values, on %s',
  async (name, workers) => {
    const place = await openPlace(name)
    try {
      const figures = await runLoad({
        store: place.store,
        seed: 5,
        items: 2_000,
        activities: 40,
        workers,
        kills: 5,
        progress: console.log,
      })
      console.log(JSON.stringify(figures))
      expect(figures).toMatchObject({ wrong: 0, extra: 0, exceeded: 0, withoutReason: 0, killed: 5, activities: 40 })
      expect(figures.found).toBe(figures.wanted)
      expect(figures.deadLetters).toBe(figures.malformed)
      expect(figures.malformed).toBeGreaterThan(10)
    } finally {
      await place.close()
    }
  },
  180_000,
)
