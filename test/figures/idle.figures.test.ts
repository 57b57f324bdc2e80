// The short form of `npm run prove -- idle`. CPU time is the child's own: neighbours on the machine do not count.
import { expect, test } from 'vitest'
import { inFolder } from './folder.ts'
import { idle } from './idle-cpu.ts'

const MOST = 0.01

test('an idle engine uses under 1 % of a core, and waiting lanes change nothing in that', async () => {
  const figure = await inFolder((folder) => idle({ lanes: 20_000, ms: 3_000, settle: 1_500, folder }))
  expect(figure.lanes).toBe(20_000)
  expect(figure.empty, JSON.stringify(figure)).toBeLessThan(MOST)
  expect(figure.waiting, JSON.stringify(figure)).toBeLessThan(MOST)
})
