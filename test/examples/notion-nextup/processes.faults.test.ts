// The short form of `npm run prove -- notion-nextup`: a few seconds of edits, and four processes on one PostgreSQL. Two are
// killed in the middle of a run, and one of them again. Delays of busy cores are measured and tolerated.
import { expect, test } from 'vitest'
import { startServer } from '../../postgres/server.ts'
import { stress } from './stress.ts'

test('three kills lose no edit, and runs stay in order, one at a time, under three calls per second', async () => {
  const server = await startServer({ version: 18 })
  try {
    const figure = await stress({
      store: server.url,
      seed: 7,
      processes: 4,
      users: 8,
      ms: 5_000,
      mostBursts: 2,
      kills: [2_000, 4_500],
      drain: 60_000,
      numbers: { lease: 2_000, debounce: { from: 1_000, to: 6_000, page: 500 } },
    })
    const text = JSON.stringify(figure)
    expect(figure, text).toMatchObject({ unranked: [], stillWaiting: 0, deadLetters: 0, overlaps: 0, inversions: 0 })
    expect(figure.cutOff, text).toBeGreaterThanOrEqual(2)
    expect(figure.killed, text).toHaveLength(3)
    expect(figure.closestHanded, text).toBeGreaterThanOrEqual(1_000)
    expect(figure.closest + figure.doormanLag + figure.processLag, text).toBeGreaterThanOrEqual(1_000)
    console.log(text)
  } finally {
    await server.stop()
  }
}, 120_000)
