// The short form of `npm run prove -- idle`. It measures the CPU time of the child, so other processes do not matter.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { idle } from './idle-cpu.ts'

const MOST = 0.01

test('an idle engine uses under 1 % of a core, with and without waiting lanes', async () => {
  const figure = await inFolder((folder) => idle({ lanes: 20_000, ms: 3_000, settle: 1_500, folder }))
  expect(figure.lanes).toBe(20_000)
  expect(figure.empty, JSON.stringify(figure)).toBeLessThan(MOST)
  expect(figure.waiting, JSON.stringify(figure)).toBeLessThan(MOST)
})
