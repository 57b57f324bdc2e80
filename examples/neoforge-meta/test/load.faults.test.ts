// The short form of `npm run prove -- neoforge-meta`.
import { expect, it } from 'vitest'
import { openPlace } from '../../kit/postgres.ts'
import { runLoad } from '../load/load.ts'

it('each healthy subscriber has every event once, in order, while transactions stay open and workers are killed', async () => {
  const place = await openPlace('postgres')
  try {
    const figures = await runLoad({
      store: place.store,
      seed: 5,
      writers: 12,
      workers: 2,
      kills: 2,
      ms: 15_000,
      longest: 8_000,
      progress: console.log,
    })
    console.log(JSON.stringify(figures))
    expect(figures).toMatchObject({ faults: [], killed: 2, subscribers: 20 })
    expect(figures.longestTransaction).toBeGreaterThan(8_000)
    expect(figures.overtaken).toBeGreaterThan(0)
    expect(figures.rolledBack).toBeGreaterThan(0)
    expect(figures.deadLetters).toBeGreaterThan(0)
    expect(figures.repeatedAfterFault).toBeGreaterThan(0)
  } finally {
    await place.close()
  }
}, 300_000)
