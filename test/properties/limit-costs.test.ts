// M5, M7: costs that a limit can never grant, and slots that are returned.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import { findEarliestSlot, returnSlot, computeSlack, takeSlot, isTooCostly } from '../../src/model/limit.ts'
import { bursts, costliest, Limit, mostWithin, requests, shape, worn, type Call } from './limit-driver.ts'
import { START } from './support.ts'

describe('M5 costs', () => {
  it('a cost above the rate, or above the bucket, can never be granted', () => {
    fc.assert(
      fc.property(shape, fc.integer({ min: 1, max: 30 }), (numbers, cost) => {
        expect(isTooCostly({ ...numbers, cost })).toBe(cost > costliest(numbers))
      }),
    )
  })

  it('any other cost is granted within one `per` and its slack, or one filling of the bucket, after the last slot', () => {
    fc.assert(
      fc.property(shape, bursts, fc.integer({ min: 1, max: 12 }), (numbers, list, cost) => {
        fc.pre(cost <= costliest(numbers))
        const { limit, now } = worn(numbers, list)
        const from = Math.max(now, limit.state.last)
        const filled =
          numbers.burst > 0 ? (numbers.per / numbers.rate) * numbers.burst : numbers.per + computeSlack(numbers.per)
        expect(limit.reserve(now, cost)).toBeLessThanOrEqual(Math.ceil(from + filled) + 1)
      }),
    )
  })
})

describe('M5 several limits on one call', () => {
  it('if another limit moves a slot later, no call overtakes it, and the rate still holds', () => {
    const later = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })), {
      minLength: 1,
      maxLength: 9,
    })
    fc.assert(
      fc.property(shape, bursts, later, (numbers, list, shares) => {
        const limit = new Limit(numbers)
        const slots: Call[] = []
        for (const [n, { now, cost }] of requests(list, numbers.per, costliest(numbers)).entries()) {
          const asked = { ...limit.numbers, cost }
          const own = findEarliestSlot(limit.state, asked, now)
          expect(own).toBeGreaterThanOrEqual(slots.at(-1)?.at ?? 0)
          const at = own + Math.floor((shares[n % shares.length] ?? 0) * numbers.per)
          limit.state = takeSlot(limit.state, asked, at, now)
          slots.push({ at, cost })
        }
        if (numbers.burst === 0) expect(mostWithin(slots, numbers.per)).toBeLessThanOrEqual(numbers.rate)
      }),
      { numRuns: 300 },
    )
  })
})

/** Takes a slot of each given cost and returns all slots, newest first. */
function thereAndBack(limit: Limit, now: Millis, some: readonly number[]): void {
  const taken = some.map((wanted) => {
    const cost = Math.min(wanted, costliest(limit.numbers))
    const { last } = limit.state
    return { cost, last, at: limit.reserve(now, cost) }
  })
  for (const { cost, at, last } of taken.toReversed()) {
    limit.state = returnSlot(limit.state, { ...limit.numbers, cost }, at, last)
  }
}

describe('M7 returned slots', () => {
  const costs = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 })

  it('returned newest first, they leave the limit as it was', () => {
    fc.assert(
      fc.property(shape, bursts, costs, fc.integer({ min: 1, max: 12 }), (numbers, list, some, next) => {
        const { limit, now } = worn(numbers, list)
        const probe = { ...limit.numbers, cost: Math.min(next, costliest(numbers)) }
        const before = findEarliestSlot(limit.state, probe, now)
        thereAndBack(limit, now, some)
        const after = findEarliestSlot(limit.state, probe, now)
        // Slots of a bucket are rounded up to whole milliseconds, and the rounding is not returned.
        const rounded = numbers.burst > 0 ? 1 : 0
        expect(after).toBeGreaterThanOrEqual(before - rounded)
        expect(after).toBeLessThanOrEqual(before + rounded * (some.length + 1))
      }),
      { numRuns: 500 },
    )
  })

  it('however many waits are cancelled, newest first, no window of `per` has more than `rate` calls', () => {
    const step = fc.oneof(fc.constant('cancel' as const), fc.double({ min: 0, max: 1.5, noNaN: true }))
    const window = fc.record({ rate: fc.integer({ min: 1, max: 4 }), per: fc.integer({ min: 10, max: 5_000 }) })
    const steps = fc.array(fc.tuple(step, fc.integer({ min: 1, max: 4 })), { maxLength: 30 })
    fc.assert(
      fc.property(window, steps, (numbers, list) => {
        const limit = new Limit(numbers)
        const slots: Call[] = []
        let now = START
        for (const [what, times] of list) {
          if (what !== 'cancel') now += what < 0.5 ? 0 : Math.floor((what - 0.5) * numbers.per)
          for (let n = 0; n < times; n++) {
            const newest = slots.at(-1)
            if (what !== 'cancel') slots.push({ at: limit.reserve(now), cost: 1 })
            // A slot whose time has come was used.
            else if (newest !== undefined && newest.at > now) {
              slots.pop()
              limit.state = returnSlot(limit.state, limit.numbers, newest.at, slots.at(-1)?.at ?? 0)
            }
          }
        }
        expect(mostWithin(slots, numbers.per)).toBeLessThanOrEqual(numbers.rate)
      }),
      { numRuns: 1_000 },
    )
  })
})
