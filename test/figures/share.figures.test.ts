// The CPU time of many tenants on SQLite: the short form of `npm run prove -- share`.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { besideOpenWindows, eachOnce } from './share-many.ts'

const storeIn = (folder: string): string => `sqlite:${join(folder, 'many.db')}`

test('20,000 open windows of other tenants do not delay an event', async () => {
  const load = { tenants: 20_000, events: 10 }
  const figure = await inFolder((folder) => besideOpenWindows({ store: storeIn(folder), ...load }))
  expect(figure.runs).toBe(load.events)
  expect(figure.cpu, JSON.stringify(figure)).toBeLessThan(2_000)
})

test('4,000 tenants with one ready lane each take only the time of their runs', async () => {
  const figure = await inFolder((folder) => eachOnce({ store: storeIn(folder), tenants: 4_000 }))
  expect(figure.runs).toBe(4_000)
  expect(figure.cpu, JSON.stringify(figure)).toBeLessThan(8_000)
})
