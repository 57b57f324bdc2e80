// Tests the arithmetic that judges the calls under a limit.
import { expect, test } from 'vitest'
import { exactCalls, gaps, mostInAWindow } from './limit-load.ts'

test('the calls of an exact limiter are counted', () => {
  const asked = Array.from({ length: 100 }, () => 0)
  expect(exactCalls(asked, [], 3_500)).toBe(12)
  expect(exactCalls(asked, [{ from: 500, to: 2_500 }], 3_600)).toBe(9)
  expect(exactCalls([0, 0, 0, 0, 200], [], 900)).toBe(3)
})

test('the check finds a fourth call within a second, and accepts one that is a second later', () => {
  expect(mostInAWindow([0, 10, 20, 1_000, 1_009.9])).toBe(4)
  expect(gaps([0, 10, 20, 1_000, 1_009])).toEqual([1_000, 999])
  expect(mostInAWindow([0, 10, 20, 1_000, 1_010, 1_020])).toBe(3)
  expect(gaps([0, 10, 20, 1_000, 1_010, 1_020])).toEqual([1_000, 1_000, 1_000])
})
