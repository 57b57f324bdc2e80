// M3: what happens to a limit besides granting slots: pauses, and calls that the API has counted.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findEarliestSlot,
  INITIAL_LIMIT_STATE,
  chargeUsage,
  computeUnknownUsage,
  pauseLimit,
  resumeLimit,
  computeSlack,
  computeStretch,
  type LimitParameters,
  type LimitState,
} from '../../src/model/limit.ts'
import { bursts, Limit, requests, shape, worn } from './limit-driver.ts'
import { START } from './support.ts'

const MINUTE = 60_000
const DAY = 1_440 * MINUTE
describe('M3 pause', () => {
  it('no slot is granted before it ends, a shorter pause does not shorten it, and each pause raises the epoch', () => {
    const pauses = fc.array(fc.tuple(fc.nat(2 * MINUTE), fc.boolean()), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(shape, bursts, pauses, fc.nat(MINUTE), (numbers, list, times, wait) => {
        const { limit, now } = worn(numbers, list)
        const { epoch } = limit.state
        for (const [time, slow] of times) limit.state = pauseLimit(limit.state, time, now, slow)
        const end = now + Math.max(...times.map(([time]) => time))
        expect(limit.state.epoch).toBe(epoch + times.length)
        for (const at of limit.reserveAll(20, now + wait)) expect(at).toBeGreaterThanOrEqual(end)
      }),
    )
  })

  it('afterwards `per` is doubled, and returns by 10 % per minute to its value', () => {
    fc.assert(
      fc.property(fc.nat(10 * MINUTE), fc.nat(30 * MINUTE), (time, after) => {
        const state = pauseLimit(INITIAL_LIMIT_STATE, time, START, true)
        expect(computeStretch(state, START)).toBe(2)
        expect(computeStretch(state, START + time)).toBe(2)
        const expected = Math.max(1, 2 * 0.9 ** (after / MINUTE))
        expect(computeStretch(state, START + time + after)).toBeCloseTo(expected, 12)
        expect(computeStretch(state, START + time + 10 * MINUTE)).toBe(1)
        expect(computeStretch(pauseLimit(INITIAL_LIMIT_STATE, time, START, false), START + time)).toBe(1)
      }),
    )
  })

  it('in the first minute afterwards, `rate` calls are at least 1.8 × `per` apart from the next', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 10, max: 5_000 }),
        fc.nat(MINUTE),
        (rate, per, time) => {
          const limit = new Limit({ rate, per }, pauseLimit(INITIAL_LIMIT_STATE, time, START, true))
          const slots = limit.reserveAll(60, START).filter((at) => at <= START + time + MINUTE)
          expect(slots[0]).toBe(START + time)
          for (const [n, at] of slots.slice(rate).entries()) {
            expect(at - (slots[n] ?? 0)).toBeGreaterThanOrEqual(1.8 * per + computeSlack(per) - 0.01)
          }
        },
      ),
    )
  })

  it('a pause never makes a call earlier than without it, slowed down or not', () => {
    fc.assert(
      fc.property(shape, bursts, fc.nat(200), fc.boolean(), (numbers, list, time, slow) => {
        const { limit, now } = worn(numbers, list)
        const paused = new Limit(numbers, pauseLimit(limit.state, time, now, slow))
        const without = limit.reserveAll(10, now)
        const held = paused.reserveAll(10, now)
        for (const [n, at] of held.entries()) expect(at).toBeGreaterThanOrEqual(without[n] ?? 0)
      }),
      { numRuns: 300 },
    )
  })

  it('resume ends the pause and the slowdown, and raises the epoch, but forgets no slot', () => {
    fc.assert(
      fc.property(shape, bursts, fc.integer({ min: 1, max: MINUTE }), (numbers, list, time) => {
        const { limit, now } = worn(numbers, list)
        const before = limit.state
        // By then all slots are used: a store takes back unused ones, and grants them again.
        const used = Math.ceil(Math.max(now, before.last))
        const after = resumeLimit(pauseLimit(before, time, now, true), used)
        expect(after.epoch).toBe(before.epoch + 2)
        const next = limit.numbers
        expect(findEarliestSlot(after, next, now)).toBeGreaterThanOrEqual(findEarliestSlot(before, next, now))
        if (numbers.burst === 0) expect(findEarliestSlot(after, next, now)).toBe(findEarliestSlot(before, next, now))
      }),
    )
  })

  it('resume counts calls that a fast clock recorded in the future as made now: the next call waits as behind a full window', () => {
    fc.assert(
      fc.property(shape, bursts, fc.integer({ min: 0, max: 400 * DAY }), ({ rate, per }, list, step) => {
        const numbers = { rate, per, burst: 0 }
        const { limit, now } = worn(numbers, list)
        const right = Math.max(0, now - step)
        const after = new Limit(numbers, resumeLimit(limit.state, right))
        const full = new Limit(numbers)
        full.reserveAll(rate, right)
        expect(after.reserve(right)).toBeLessThanOrEqual(full.reserve(right))
      }),
    )
  })

  it('an idle limit becomes like a new one', () => {
    const pauses = fc.option(fc.tuple(fc.nat(2 * MINUTE), fc.boolean()), { nil: undefined })
    fc.assert(
      fc.property(shape, bursts, bursts, pauses, (numbers, list, more, time) => {
        const { limit, now } = worn(numbers, list)
        if (time !== undefined) limit.state = pauseLimit(limit.state, time[0], now, time[1])
        for (const { now: later } of requests(more, numbers.per, 1)) limit.reserve(Math.max(now, later))
        const idle = Math.max(limit.state.idleAt, now)
        const fresh = new Limit(numbers)
        expect(computeStretch(limit.state, idle)).toBe(1)
        expect(limit.reserveAll(30, idle)).toEqual(fresh.reserveAll(30, idle))
      }),
    )
  })
})

function observeUsage(state: LimitState, numbers: LimitParameters, used: number, now: number): LimitState {
  return chargeUsage(state, { ...numbers, cost: computeUnknownUsage(state, numbers, used, now) }, now)
}

describe('M3 observe', () => {
  const seen = fc.record({ rate: fc.integer({ min: 1, max: 12 }), per: fc.integer({ min: 10, max: 5_000 }) })

  it('calls that the API has counted count as made now', () => {
    fc.assert(
      fc.property(seen, fc.nat(15), (numbers, used) => {
        const limit = new Limit(numbers)
        limit.state = observeUsage(limit.state, limit.numbers, used, START)
        const atOnce = limit.reserveAll(15, START).filter((at) => at === START).length
        expect(atOnce).toBe(Math.max(0, numbers.rate - used))
      }),
    )
  })

  it("so it is if the process's own calls are longer ago than `per`: the API did not count those", () => {
    fc.assert(
      fc.property(seen, fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }), (numbers, calls, used) => {
        const limit = new Limit(numbers)
        limit.reserveAll(Math.min(calls, numbers.rate), START)
        const now = START + Math.ceil(1.5 * numbers.per)
        limit.state = observeUsage(limit.state, limit.numbers, used, now)
        const atOnce = limit.reserveAll(15, now).filter((at) => at - now < numbers.per).length
        expect(atOnce + Math.min(used, numbers.rate)).toBeLessThanOrEqual(numbers.rate)
      }),
    )
  })

  it('no later call overtakes an earlier one', () => {
    fc.assert(
      fc.property(seen, bursts, fc.nat(15), (numbers, list, used) => {
        const { limit, now } = worn({ ...numbers, burst: 0 }, list)
        const { last } = limit.state
        limit.state = observeUsage(limit.state, limit.numbers, used, now)
        expect(limit.reserve(now)).toBeGreaterThanOrEqual(last)
      }),
    )
  })

  it("the process's own calls are not counted twice", () => {
    fc.assert(
      fc.property(seen, fc.integer({ min: 1, max: 12 }), fc.nat(12), (numbers, calls, used) => {
        const own = Math.min(calls, numbers.rate)
        fc.pre(used <= own)
        const limit = new Limit(numbers)
        limit.reserveAll(own, START)
        expect(observeUsage(limit.state, limit.numbers, used, START)).toEqual(limit.state)
      }),
    )
  })
})
