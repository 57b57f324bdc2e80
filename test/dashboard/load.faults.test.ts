// The short form of `npm run prove -- dashboard`: a visitor goes through all pages while events flow.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inFolder } from '../figures/folder.ts'
import { Chance } from '../sqlite/kill-load.ts'
import { visit } from './load/measure.ts'

const LOAD = { events: 4_000, lanes: 2_000, deadLetters: 60, perSecond: 200 }

it('answers every step of a visitor while 200 events a second flow, without an error', async () => {
  const figures = await inFolder((folder) =>
    visit({
      store: `sqlite:${join(folder, 'visit.db')}`,
      load: LOAD,
      minutes: 0,
      chance: new Chance(34),
      progress: () => {},
    }),
  )
  expect(figures.errors).toEqual([])
  expect(figures.interactions).toBeGreaterThan(25)
  expect(figures.publishedPerSecond).toBeGreaterThan(0)
  expect(figures.heapMb).toBeGreaterThan(1)
  expect(figures.heapMb).toBeLessThan(100)
})
