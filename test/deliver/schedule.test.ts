// When a batch is posted again: the usual schedule to its end, and lists that are taken at their word.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deliverySchedule, type DeliverySchedule } from '../../src/deliver/schedule.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const MIDDLE = 0.5

/** The delays until it is dead, if every try fails at once. */
function delaysOf(schedule: DeliverySchedule, chance: () => number, asked?: number): readonly number[] {
  const delays: number[] = []
  for (let elapsed = 0; ;) {
    const delay = schedule.delay({ failures: delays.length + 1, elapsed, chance: chance(), asked })
    if (delay === undefined) return delays
    delays.push(delay)
    elapsed += delay
  }
}

const sum = (delays: readonly number[]): number => delays.reduce((total, delay) => total + delay, 0)

test('5 s, 30 s, 2 m, 5 m, then every 15 m until 75 h in all', () => {
  const delays = delaysOf(deliverySchedule(), () => MIDDLE)
  expect(delays.slice(0, 4)).toEqual([5_000, 30_000, 2 * MINUTE, 5 * MINUTE])
  expect(new Set(delays.slice(4))).toEqual(new Set([15 * MINUTE]))
  expect(sum(delays)).toBeLessThanOrEqual(75 * HOUR)
  expect(sum(delays)).toBeGreaterThan(75 * HOUR - 15 * MINUTE)
  expect(delays.length + 1).toBe(deliverySchedule().tries)
  expect(deliverySchedule().tries).toBe(304)
})

test('each is off by a fifth at most, and the end is where it was', () => {
  const usual = [5_000, 30_000, 2 * MINUTE, 5 * MINUTE]
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })), (chances) => {
      const delays = delaysOf(deliverySchedule(), () => chances.next().value)
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

const at = (chance: number): number | undefined => deliverySchedule().delay({ failures: 1, elapsed: 0, chance })

test('both ends of chance', () => {
  expect([at(0), at(MIDDLE), at(1 - Number.EPSILON)]).toEqual([4_000, 5_000, 6_000])
})

const after = (asked: number, list?: readonly number[]): number | undefined =>
  deliverySchedule(list).delay({ failures: 1, elapsed: 0, chance: MIDDLE, asked })

test('who asks for patience gets it, up to a day; who asks for haste does not', () => {
  expect([after(1_000), after(HOUR), after(48 * HOUR)]).toEqual([5_000, HOUR, 24 * HOUR])
  expect([after(0, [7]), after(HOUR, [7])]).toEqual([7, HOUR])
})

test('patience counts towards the end', () => {
  // Three days pass, and what is left of the time is used up.
  expect(delaysOf(deliverySchedule(), () => MIDDLE, 24 * HOUR)).toEqual([24 * HOUR, 24 * HOUR, 24 * HOUR, 24 * HOUR])
})

test('a list is literal, whatever chance says and however long it takes', () => {
  const schedule = deliverySchedule(['1m', '2m', '100h', 0])
  const delays = [MINUTE, 2 * MINUTE, 100 * HOUR, 0]
  expect(delaysOf(schedule, () => 0)).toEqual(delays)
  expect(delaysOf(schedule, () => 0.99)).toEqual(delays)
  expect(schedule.tries).toBe(5)
  expect(delaysOf(deliverySchedule([]), () => 0)).toEqual([])
})

test('nonsense is refused by its name', () => {
  expect(() => deliverySchedule(['1m', 'soon' as '1s'], 'versions.retry')).toThrow('versions.retry[1]')
  expect(() => deliverySchedule([Infinity])).toThrow('retry[0] is endless')
})
