// The measurement must distinguish unbounded growth from a settled size, even with much noise.
import { expect, test } from 'vitest'
import { growthOf } from './growth.ts'

const MINUTES = Array.from({ length: 60 }, (_, minute) => minute + 1)

test('a size that grows by the same amount per minute more than doubles', () => {
  expect(growthOf(MINUTES.map((minute) => 3 * minute)).ratio).toBeCloseTo(7 / 3, 1)
})

test('a size that is constant after a quarter of the time does not grow', () => {
  const { early, late, ratio } = growthOf(MINUTES.map((minute) => Math.min(15, minute)))
  expect({ early, late, ratio }).toEqual({ early: 15, late: 15, ratio: 1 })
})

test('a few outliers change nothing', () => {
  expect(growthOf(MINUTES.map((minute) => (minute % 5 === 0 ? 100 * minute : 15))).ratio).toBe(1)
})

test('a size that only appears at the end has no bound, and an empty one does not grow', () => {
  expect(growthOf(MINUTES.map((minute) => (minute > 40 ? 8 : 0))).ratio).toBe(Infinity)
  expect(growthOf(MINUTES.map(() => 0)).ratio).toBe(1)
})
