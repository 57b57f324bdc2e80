// L8: the number of attempts, and the delay after each failure.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoff, delayWithRetryAfter, RETRY_AFTER_MAX, type RetryOptions } from '../../src/flow/backoff.ts'
import { refusal } from './support.ts'

const DAY = 86_400_000
const delays = fc.array(fc.nat(90 * DAY), { maxLength: 30 })
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const grown = fc.record({
  first: fc.integer({ min: 1, max: 60_000 }),
  factor: fc.double({ min: 1, max: 4, noNaN: true }),
  cap: fc.integer({ min: 1, max: DAY }),
  retries: fc.nat(40),
})

/** Fails until no attempt is left, and returns the delays. */
function allDelays(options: RetryOptions | undefined, at: number): readonly number[] {
  const plan = backoff(options)
  const waited: number[] = []
  for (let failures = 1; ; failures++) {
    const delay = plan.delay(failures, at)
    if (delay === undefined) return waited
    waited.push(delay)
  }
}

describe('L8 n delays mean n + 1 attempts', () => {
  it('for a list, with and without jitter', () => {
    fc.assert(
      fc.property(delays, share, chance, (list, jitter, at) => {
        for (const options of [list, { delays: list }, { delays: list, jitter }]) {
          expect(backoff(options).tries).toBe(list.length + 1)
          // No delay follows the last attempt, so there are attempts − 1 delays.
          expect(allDelays(options, at)).toHaveLength(list.length)
        }
      }),
    )
  })

  it('for an exponential schedule: `retries` is the number of delays', () => {
    fc.assert(
      fc.property(grown, chance, (options, at) => {
        expect(backoff(options).tries).toBe(options.retries + 1)
        expect(allDelays(options, at)).toHaveLength(options.retries)
      }),
    )
  })

  it('an empty list means one attempt', () => {
    expect(backoff([]).tries).toBe(1)
    expect(backoff([]).delay(1, 0)).toBeUndefined()
  })

  it('without a failure there is no delay', () => {
    expect(backoff(['1s']).delay(0, 0.5)).toBeUndefined()
  })
})

describe('L8 delays', () => {
  it('a list is literal: no jitter at all', () => {
    fc.assert(
      fc.property(delays, chance, (list, at) => {
        expect(allDelays(list, at)).toEqual(list)
        expect(allDelays({ delays: list }, at)).toEqual(list)
      }),
    )
    expect(allDelays(['250ms', '1s', '2s'], 0.9)).toEqual([250, 1_000, 2_000])
  })

  it('the default is 1 s, 5 s, 30 s, 5 m, 30 m, each up to 20 % shorter or longer', () => {
    const plain = [1_000, 5_000, 30_000, 300_000, 1_800_000]
    expect(allDelays(undefined, 0.5)).toEqual(plain)
    expect(allDelays(undefined, 0)).toEqual(plain.map((delay) => delay * 0.8))
    fc.assert(
      fc.property(chance, (at) => {
        for (const [n, delay] of allDelays(undefined, at).entries()) {
          expect(Math.abs(delay / (plain[n] ?? 0) - 1)).toBeLessThanOrEqual(0.2)
        }
      }),
    )
    expect(allDelays(undefined, 1 - 2 ** -53)).toEqual(plain.map((delay) => delay * 1.2))
  })

  it('jitter stays within its share, is symmetric, and grows with the random number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: DAY }), share, chance, chance, (delay, jitter, one, other) => {
        const plan = backoff({ delays: [delay], jitter })
        const [low, high] = one <= other ? [one, other] : [other, one]
        const least = plan.delay(1, low) ?? -1
        const most = plan.delay(1, high) ?? -1
        expect(least).toBeGreaterThanOrEqual(Math.round(delay * (1 - jitter)))
        expect(most).toBeLessThanOrEqual(Math.round(delay * (1 + jitter)))
        expect(least).toBeLessThanOrEqual(most)
        expect(plan.delay(1, 0.5)).toBe(delay)
      }),
    )
  })

  it('exponential: each delay is `factor` times the one before up to the maximum, ± 20 % by default', () => {
    fc.assert(
      fc.property(grown, chance, (options, at) => {
        const exact = Array.from({ length: options.retries }, (_, n) =>
          Math.min(options.cap, options.first * options.factor ** n),
        )
        for (const [n, delay] of allDelays({ ...options, jitter: 0 }, at).entries()) {
          expect(Math.abs(delay - (exact[n] ?? 0))).toBeLessThanOrEqual(0.5)
          expect(delay).toBeLessThanOrEqual(options.cap)
        }
        for (const [n, delay] of allDelays(options, at).entries()) {
          expect(Math.abs(delay - (exact[n] ?? 0))).toBeLessThanOrEqual(0.2 * (exact[n] ?? 0) + 0.5)
        }
      }),
    )
    expect(allDelays({ first: '1s', retries: 5, cap: '10s', jitter: 0 }, 0)).toEqual([
      1_000, 2_000, 4_000, 8_000, 10_000,
    ])
  })

  it('every delay is a whole number of milliseconds, and unbounded growth still gives a valid delay', () => {
    fc.assert(
      fc.property(grown, chance, (options, at) => {
        expect(allDelays(options, at).every((delay) => Number.isInteger(delay) && delay >= 0)).toBe(true)
      }),
    )
    expect(allDelays({ first: 1, factor: 10, retries: 1_000 }, 0.3).at(-1)).toBe(Infinity)
  })
})

describe('L8 Retry-After', () => {
  it('the longer of the delay and Retry-After counts, where Retry-After counts up to 24 hours', () => {
    fc.assert(
      fc.property(
        fc.nat(90 * DAY),
        fc.option(fc.oneof(fc.nat(90 * DAY), fc.constant(Infinity)), { nil: undefined }),
        (own, asked) => {
          const wait = delayWithRetryAfter(own, asked)
          expect(wait).toBeGreaterThanOrEqual(own)
          expect(wait).toBeLessThanOrEqual(Math.max(own, DAY))
          expect(wait).toBe(asked === undefined || asked <= own ? own : Math.max(own, Math.min(asked, DAY)))
        },
      ),
    )
    expect(RETRY_AFTER_MAX).toBe(DAY)
  })
})

describe('invalid options', () => {
  const wrong: readonly [string, unknown][] = [
    ['pay.jitter', { delays: ['1s'], jitter: -0.1 }],
    ['pay.jitter', { delays: ['1s'], jitter: 1 }],
    ['pay.jitter', { delays: ['1s'], jitter: Number.NaN }],
    ['pay.jitter', { first: '1s', retries: 2, jitter: 1.5 }],
    ['pay[1]', ['1s', 'soon']],
    ['pay[0]', { delays: [-5] }],
    ['pay[2]', [1, 2, Number.NaN]],
    ['pay.retries', { first: '1s', retries: -1 }],
    ['pay.retries', { first: '1s', retries: 1.5 }],
    ['pay.retries', { first: '1s', retries: 1_001 }],
    ['pay.retries', { first: '1s', retries: Infinity }],
    ['pay.factor', { first: '1s', retries: 2, factor: 0.9 }],
    ['pay.factor', { first: '1s', retries: 2, factor: Number.NaN }],
    ['pay.first', { first: 'a second', retries: 2 }],
    ['pay.cap', { first: '1s', retries: 2, cap: -1 }],
  ]

  it.each(wrong)('%s in %j', (option, options) => {
    expect(refusal(() => backoff(options as RetryOptions, 'pay')).message).toContain(`${option} `)
  })
})
