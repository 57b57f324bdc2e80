// Tests when a batch is posted again: the default schedule to its end, and literal lists.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createDeliverySchedule, type DeliverySchedule } from '../../src/deliver/retry-schedule.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const MIDDLE = 0.5

/** Returns the delays until the batch is dead, if every attempt fails at once. */
function delaysOf(schedule: DeliverySchedule, chance: () => number, asked?: number): readonly number[] {
  const delays: number[] = []
  for (let elapsed = 0; ;) {
    const delay = schedule.delay({ failures: delays.length + 1, elapsed, random: chance(), requestedDelay: asked })
    if (delay === undefined) return delays
    delays.push(delay)
    elapsed += delay
  }
}

const sum = (delays: readonly number[]): number => delays.reduce((total, delay) => total + delay, 0)

test('D4 the default is 5 s, 30 s, 2 m, 5 m, then every 15 m up to 75 h in total', () => {
  const delays = delaysOf(createDeliverySchedule(), () => MIDDLE)
  expect(delays.slice(0, 4)).toEqual([5_000, 30_000, 2 * MINUTE, 5 * MINUTE])
  expect(new Set(delays.slice(4))).toEqual(new Set([15 * MINUTE]))
  expect(sum(delays)).toBeLessThanOrEqual(75 * HOUR)
  expect(sum(delays)).toBeGreaterThan(75 * HOUR - 15 * MINUTE)
  expect(delays.length + 1).toBe(createDeliverySchedule().tries)
  expect(createDeliverySchedule().tries).toBe(304)
})

test('jitter is at most 20 %, and does not move the end', () => {
  const usual = [5_000, 30_000, 2 * MINUTE, 5 * MINUTE]
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })), (chances) => {
      const delays = delaysOf(createDeliverySchedule(), () => chances.next().value)
      delays.forEach((delay, at) => {
        const middle = usual[at] ?? 15 * MINUTE
        expect(Math.abs(delay - middle)).toBeLessThanOrEqual(0.2 * middle)
      })
      expect(sum(delays)).toBeLessThanOrEqual(75 * HOUR)
      expect(sum(delays)).toBeGreaterThan(75 * HOUR - 18 * MINUTE)
    }),
    { numRuns: 50 },
  )
})

const at = (chance: number): number | undefined =>
  createDeliverySchedule().delay({ failures: 1, elapsed: 0, random: chance })

test('jitter reaches both ends of its range', () => {
  expect([at(0), at(MIDDLE), at(1 - Number.EPSILON)]).toEqual([4_000, 5_000, 6_000])
})

const after = (asked: number, list?: readonly number[]): number | undefined =>
  createDeliverySchedule(list).delay({ failures: 1, elapsed: 0, random: MIDDLE, requestedDelay: asked })

test('Retry-After lengthens a delay up to a day, and never shortens it', () => {
  expect([after(1_000), after(HOUR), after(48 * HOUR)]).toEqual([5_000, HOUR, 24 * HOUR])
  expect([after(0, [7]), after(HOUR, [7])]).toEqual([7, HOUR])
})

test('Retry-After counts towards the total time', () => {
  // Three days pass, and then the rest of the total time.
  expect(delaysOf(createDeliverySchedule(), () => MIDDLE, 24 * HOUR)).toEqual([
    24 * HOUR,
    24 * HOUR,
    24 * HOUR,
    24 * HOUR,
  ])
})

test('D4 a given list is literal, without jitter or a total time', () => {
  const schedule = createDeliverySchedule(['1m', '2m', '100h', 0])
  const delays = [MINUTE, 2 * MINUTE, 100 * HOUR, 0]
  expect(delaysOf(schedule, () => 0)).toEqual(delays)
  expect(delaysOf(schedule, () => 0.99)).toEqual(delays)
  expect(schedule.tries).toBe(5)
  expect(delaysOf(createDeliverySchedule([]), () => 0)).toEqual([])
})

test('an invalid delay is rejected with its name', () => {
  expect(() => createDeliverySchedule(['1m', 'soon' as '1s'], 'versions.retry')).toThrow('versions.retry[1]')
  expect(() => createDeliverySchedule([Infinity])).toThrow('retry[0] must be finite')
})
