// Times are whole milliseconds, even if a test advances by fractions, because stores keep only whole ones.
import { expect, test } from 'vitest'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

test('fractions of a millisecond add up, but the wall time stays whole', () => {
  const clock = new VirtualClock(1_000)
  const fired: number[] = []
  clock.after(2, () => fired.push(clock.now()))
  clock.advance(1.5)
  expect([clock.now(), clock.monotonic()]).toEqual([1_001, 1.5])
  clock.advance(1.5)
  expect([clock.now(), clock.monotonic(), fired]).toEqual([1_003, 3, [1_002]])
})
