// Sums of times, and long timers: the two places where an ordinary number silently turns into "at once".
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { addDelay, NEVER, systemClock } from '../../src/clock.ts'

const DAY = 86_400_000
const moment = fc.oneof(fc.integer({ min: 0, max: 2 ** 43 }), fc.maxSafeNat(), fc.constant(NEVER))
const delay = fc.oneof(
  fc.double({ min: 0, max: 2 ** 45, noNaN: true }),
  fc.integer({ min: 2 ** 31 - 2, max: 2 ** 31 + 2 }),
  fc.constantFrom(0, 0.5, NEVER - 1, NEVER, Infinity),
  fc.maxSafeNat(),
)

describe('addDelay', () => {
  it('is a whole number from `from` to NEVER, and not before the delay has passed', () => {
    fc.assert(
      fc.property(moment, delay, (from, wait) => {
        const at = addDelay(from, wait)
        expect(Number.isSafeInteger(at)).toBe(true)
        expect(at).toBeGreaterThanOrEqual(from)
        expect(at).toBeGreaterThanOrEqual(Math.min(NEVER, from + wait))
        expect(at).toBeLessThanOrEqual(Math.min(NEVER, Math.ceil(from + wait)))
      }),
      { numRuns: 2_000 },
    )
  })

  it('is monotonic: a longer delay never ends earlier', () => {
    fc.assert(
      fc.property(moment, delay, delay, (from, one, other) => {
        const [short, long] = one <= other ? [one, other] : [other, one]
        expect(addDelay(from, short)).toBeLessThanOrEqual(addDelay(from, long))
      }),
      { numRuns: 1_000 },
    )
  })

  it('an infinite delay or start gives NEVER', () => {
    fc.assert(
      fc.property(moment, (from) => {
        expect(addDelay(from, Infinity)).toBe(NEVER)
      }),
    )
    fc.assert(
      fc.property(delay, (wait) => {
        expect(addDelay(NEVER, wait)).toBe(NEVER)
      }),
    )
  })
})

describe('the system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0 })
    // A timer that is set again and again at once would never let the test end.
    const { setTimeout: set } = globalThis
    let times = 0
    vi.stubGlobal('setTimeout', (call: () => void, ms: number) => {
      if (++times > 5_000) throw new Error('The clock spins.')
      return set(call, ms)
    })
  })
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  it.each([2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32, 2 ** 32 + 1, 400 * DAY])(
    'a timer of %d ms does not fire early',
    (wait) => {
      const call = vi.fn<() => void>()
      systemClock.after(wait, call)
      vi.advanceTimersByTime(wait - 1)
      expect(call).not.toHaveBeenCalled()
      vi.advanceTimersByTime(2)
      expect(call).toHaveBeenCalledTimes(1)
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  it('fires once, never early, at most a millisecond late, for any delay', () => {
    const wait = fc.oneof(fc.integer({ min: 0, max: 2 ** 34 }), fc.integer({ min: 2 ** 31 - 3, max: 2 ** 31 + 3 }))
    fc.assert(
      fc.property(wait, (ms) => {
        const from = systemClock.monotonic()
        const fired: number[] = []
        systemClock.after(ms, () => fired.push(systemClock.monotonic() - from))
        vi.advanceTimersByTime(ms + 10)
        vi.advanceTimersByTime(60 * DAY)
        expect(fired).toHaveLength(1)
        expect(fired[0]).toBeGreaterThanOrEqual(ms - 0.001)
        expect(fired[0]).toBeLessThanOrEqual(ms + 1.001)
      }),
    )
  })

  it('a cancelled timer never fires and leaves no timer behind, before and after 24 days', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 34 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (ms, share) => {
        const call = vi.fn<() => void>()
        const cancel = systemClock.after(ms, call)
        vi.advanceTimersByTime(Math.floor(ms * share))
        cancel()
        expect(vi.getTimerCount()).toBe(0)
        vi.advanceTimersByTime(ms + 60 * DAY)
        expect(call).not.toHaveBeenCalled()
      }),
    )
  })

  it('an infinite delay never fires, and a negative one fires next', () => {
    const never = vi.fn<() => void>()
    const cancel = systemClock.after(Infinity, never)
    vi.advanceTimersByTime(1_000 * DAY)
    expect(never).not.toHaveBeenCalled()
    cancel()
    expect(vi.getTimerCount()).toBe(0)
    const next = vi.fn<() => void>()
    systemClock.after(-5, next)
    vi.advanceTimersByTime(1)
    expect(next).toHaveBeenCalledTimes(1)
  })

  it('its wall time is in whole milliseconds', () => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
    expect(Number.isInteger(systemClock.now())).toBe(true)
  })
})
