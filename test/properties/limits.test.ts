// M1: the guarantee of a limit over any period, its cost in throughput, and a limiter that breaks the guarantee.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import { computeSlack } from '../../src/model/limit.ts'
import {
  bursts,
  flood,
  lateness,
  Limit,
  mostWithin,
  requests,
  slotsOf,
  usedLate,
  type Call,
  type Limiter,
} from './limit-driver.ts'
import { START } from './support.ts'

const rate = fc.integer({ min: 1, max: 12 })
const per = fc.oneof(fc.integer({ min: 10, max: 5_000 }), fc.constantFrom(1_000, 60_000, 86_400_000))
const load = fc.oneof(bursts, flood)

/** A counter that restarts when its time is over, like INCR with EXPIRE: plausible, and wrong. */
function fixedWindow(most: number, length: Millis): Limiter {
  let from = Number.NEGATIVE_INFINITY
  let used = 0
  return (now, cost) => {
    let at = Math.max(now, from)
    if (at >= from + length) [from, used] = [at, 0]
    if (used + cost > most) [from, used, at] = [from + length, 0, from + length]
    used += cost
    return at
  }
}

describe('M1 at most `rate` calls in any window of `per`', () => {
  it('holds for any load and costs, with every slot used up to its slack late', () => {
    fc.assert(
      fc.property(rate, per, load, lateness, (most, length, list, late) => {
        const limit = new Limit({ rate: most, per: length })
        const slots = slotsOf((now, cost) => limit.reserve(now, cost), requests(list, length, most))
        expect(mostWithin(usedLate(slots, late, computeSlack(length)), length)).toBeLessThanOrEqual(most)
      }),
      { numRuns: 1_000 },
    )
  })

  it('holds at rates above 1,000, where the log is kept in coarser steps', () => {
    const large = fc.integer({ min: 1_001, max: 20_000 })
    const long = fc.oneof(fc.integer({ min: 1_000, max: 5_000 }), fc.integer({ min: 1_000_000, max: 100_000_000 }))
    fc.assert(
      fc.property(large, long, bursts, lateness, (most, length, list, late) => {
        const limit = new Limit({ rate: most, per: length })
        const slots = slotsOf((now, cost) => limit.reserve(now, cost), requests(list, length, most))
        expect(mostWithin(usedLate(slots, late, computeSlack(length)), length)).toBeLessThanOrEqual(most)
      }),
      { numRuns: 300 },
    )
  })

  it('the same check catches a fixed window, which only bursts reveal', () => {
    const over = (arrivals: fc.Arbitrary<readonly { gap: number; calls: number; cost: number }[]>): boolean =>
      fc.check(
        fc.property(
          arrivals,
          (list) => mostWithin(slotsOf(fixedWindow(3, 1_000), requests(list, 1_000, 1)), 1_000) <= 3,
        ),
        { numRuns: 1_000 },
      ).failed
    expect(over(bursts)).toBe(true)
    // A constant load is served evenly, and would not have revealed the fixed window.
    expect(over(flood)).toBe(false)
    const arrivals = [0, 657, 971, 1_000, 1_000].map((at) => ({ now: START + at, cost: 1 }))
    expect(mostWithin(slotsOf(fixedWindow(3, 1_000), arrivals), 1_000)).toBe(4)
    const limit = new Limit({ rate: 3, per: 1_000 })
    expect(
      mostWithin(
        slotsOf((now) => limit.reserve(now), arrivals),
        1_000,
      ),
    ).toBe(3)
  })
})

/** The first time at which all slots granted so far leave room. */
function naiveSlot(given: readonly Call[], asked: { now: Millis; cost: number }, most: number, length: Millis): Millis {
  const reach = length + Math.min(100, length / 10)
  const floor = Math.max(asked.now, given.at(-1)?.at ?? 0)
  const moments = [floor, ...given.map(({ at }) => Math.ceil(at + reach)).filter((at) => at > floor)]
  const fits = (at: Millis): boolean =>
    given.reduce((sum, slot) => (slot.at + reach > at ? sum + slot.cost : sum), asked.cost) <= most
  return moments.toSorted((one, other) => one - other).find((at) => fits(at)) ?? Number.NaN
}

describe('M1 the cost of exactness', () => {
  it('a slot is the first time that respects the rate over all granted slots, and none is before an earlier one', () => {
    fc.assert(
      fc.property(rate, per, load, (most, length, list) => {
        const limit = new Limit({ rate: most, per: length })
        const given: Call[] = []
        for (const asked of requests(list, length, most)) {
          const expected = naiveSlot(given, asked, most, length)
          const at = limit.reserve(asked.now, asked.cost)
          expect(at).toBe(expected)
          expect(at).toBeGreaterThanOrEqual(given.at(-1)?.at ?? 0)
          given.push({ at, cost: asked.cost })
        }
      }),
      { numRuns: 400 },
    )
  })

  it('under full load, 3 per second are 3 per 1,100 ms: 1,000 / 1,100 of the rate', () => {
    const limit = new Limit({ rate: 3, per: 1_000 })
    const last = limit.reserveAll(3_000, START).at(-1) ?? 0
    expect(last - START).toBe(999 * 1_100)
  })

  it('under full load, at least 85 % of the rate are made, at any rate', () => {
    const rates = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 900, max: 3_000 }))
    fc.assert(
      fc.property(rates, fc.integer({ min: 100, max: 100_000 }), (most, length) => {
        const limit = new Limit({ rate: most, per: length })
        const took = (limit.reserveAll(4 * most + 1, START).at(-1) ?? 0) - START
        expect((4 * length) / took).toBeGreaterThanOrEqual(0.85)
      }),
      { numRuns: 40 },
    )
  })

  it('a load below the rate never waits', () => {
    fc.assert(
      fc.property(
        rate,
        per,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 60 }),
        (most, length, shares) => {
          const limit = new Limit({ rate: most, per: length })
          const apart = Math.ceil((length + computeSlack(length)) / most)
          let now = START
          for (const more of shares) {
            now += apart + Math.floor(more * length)
            expect(limit.reserve(now)).toBe(now)
          }
        },
      ),
    )
  })

  it.each([
    ['under full load', 0, 50, 8_000],
    ['just below the rate', 1_850, 50, 8_000],
    ['at half the rate', 3_600, 50, 6_000],
    ['one call for each entry', 3_600, 1, 4_000],
    ['now and then', 30_000, 1, 1_000],
  ])('the log of 100,000 an hour has about 1,000 entries, not 100,000: %s', (_, apart, cost, times) => {
    const limit = new Limit({ rate: 100_000, per: 3_600_000 })
    let longest = 0
    let now = START
    for (let n = 0; n < times; n++) {
      // A caller that would wait longer than ten seconds asks again later (M6).
      now = Math.max(now + apart, limit.reserve(now, cost) - 10_000)
      longest = Math.max(longest, limit.state.slots.length)
    }
    expect(longest).toBeLessThanOrEqual(1_100)
  })
})

describe('M1 with `burst`: a token bucket', () => {
  const shape = fc.record({ rate: fc.integer({ min: 1, max: 20 }), per, burst: fc.integer({ min: 1, max: 15 }) })

  it('there are never more than burst + rate · t calls in any time t', () => {
    fc.assert(
      fc.property(shape, load, (numbers, list) => {
        const limit = new Limit(numbers)
        const slots = slotsOf((now, cost) => limit.reserve(now, cost), requests(list, numbers.per, numbers.burst))
        // By how much the period between any two calls exceeds the bound.
        let over = Number.NEGATIVE_INFINITY
        for (const [n, first] of slots.entries()) {
          let used = 0
          for (const last of slots.slice(n)) {
            used += last.cost
            over = Math.max(over, used - numbers.burst - (numbers.rate * (last.at - first.at)) / numbers.per)
          }
        }
        expect(over).toBeLessThanOrEqual(0.01)
      }),
      { numRuns: 500 },
    )
  })

  it('each call is made as soon as there are enough tokens, first come, first served', () => {
    fc.assert(
      fc.property(shape, load, (numbers, list) => {
        const limit = new Limit(numbers)
        const perToken = numbers.per / numbers.rate
        let tokens = numbers.burst
        let at = START
        for (const { now, cost } of requests(list, numbers.per, numbers.burst)) {
          const floor = Math.max(now, at)
          tokens = Math.min(numbers.burst, tokens + (floor - at) / perToken)
          at = floor + Math.max(0, Math.ceil((cost - tokens) * perToken - 0.01))
          tokens = Math.min(numbers.burst, tokens + (at - floor) / perToken) - cost
          expect(Math.abs(limit.reserve(now, cost) - at)).toBeLessThanOrEqual(1)
        }
      }),
      { numRuns: 500 },
    )
  })
})
