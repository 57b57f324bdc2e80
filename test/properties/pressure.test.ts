// L22: how pressure rises and decays, and its effect on an adaptive window.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  computeAdaptiveQuiet,
  computePressureLevel,
  NO_PRESSURE,
  raisePressure,
  type Pressure,
} from '../../src/model/place.ts'
import { START } from './support.ts'

const MINUTE = 60_000
const gaps = fc.array(fc.oneof(fc.nat(6_000), fc.constantFrom(0, 4_999, 5_000, MINUTE), fc.nat(10 * MINUTE)), {
  maxLength: 60,
})
const range = fc
  .tuple(fc.integer({ min: 1, max: 10 * MINUTE }), fc.integer({ min: 0, max: 60 * MINUTE }))
  .map(([from, more]) => ({ from, to: from + more }))
const level = fc.double({ min: 0, max: 1, noNaN: true })

/** 429s with these gaps between them: the pressure after each, and when. */
function story(
  between: readonly number[],
): { readonly now: number; readonly before: Pressure; readonly after: Pressure }[] {
  let now = START
  let pressure = NO_PRESSURE
  return between.map((gap) => {
    now += gap
    const before = pressure
    pressure = raisePressure(before, now)
    return { now, before, after: pressure }
  })
}

describe('L22 pressure', () => {
  it('is 0 before anything happened, at any time', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (now) => {
        expect(computePressureLevel(NO_PRESSURE, now)).toBe(0)
      }),
    )
  })

  it('stays between 0 and 1, whatever happens', () => {
    fc.assert(
      fc.property(gaps, fc.nat(10 * MINUTE), (between, rest) => {
        for (const { now, after } of story(between)) {
          for (const at of [now - rest, now, now + rest]) {
            expect(computePressureLevel(after, at)).toBeGreaterThanOrEqual(0)
            expect(computePressureLevel(after, at)).toBeLessThanOrEqual(1)
          }
        }
      }),
    )
  })

  it('halves each minute', () => {
    fc.assert(
      fc.property(gaps, fc.nat(10 * MINUTE), (between, rest) => {
        for (const { now, after } of story(between)) {
          expect(computePressureLevel(after, now + rest + MINUTE)).toBeCloseTo(
            computePressureLevel(after, now + rest) / 2,
            12,
          )
        }
      }),
    )
  })

  it('only decreases while nothing happens', () => {
    fc.assert(
      fc.property(gaps, fc.nat(MINUTE), fc.nat(MINUTE), (between, one, more) => {
        for (const { now, after } of story(between)) {
          expect(computePressureLevel(after, now + one + more)).toBeLessThanOrEqual(
            computePressureLevel(after, now + one),
          )
        }
      }),
    )
  })

  it('a 429 adds 0.25, up to 1, and only the first one in five seconds counts', () => {
    fc.assert(
      fc.property(gaps, (between) => {
        let counted = Number.NEGATIVE_INFINITY
        for (const { now, before, after } of story(between)) {
          const was = computePressureLevel(before, now)
          if (now - counted < 5_000) {
            expect(after).toBe(before)
          } else {
            expect(computePressureLevel(after, now)).toBeCloseTo(Math.min(1, was + 0.25), 12)
            counted = now
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it('many 429s take at least 15 seconds to reach 1, from where the pressure decays', () => {
    const storm = story(Array.from({ length: 400 }, () => 100))
    const first = storm.findIndex(({ now, after }) => computePressureLevel(after, now) > 0.9)
    expect((storm[first]?.now ?? 0) - (storm[0]?.now ?? 0)).toBeGreaterThanOrEqual(15_000)
    const last = storm.at(-1)
    expect(last === undefined ? 0 : computePressureLevel(last.after, last.now + 2 * MINUTE)).toBeLessThanOrEqual(0.25)
  })
})

describe('L22 adaptive quiet', () => {
  it('is `from` without pressure, `to` at the maximum, and their geometric mean half-way', () => {
    fc.assert(
      fc.property(range, (span) => {
        expect(computeAdaptiveQuiet(span, 0)).toBe(span.from)
        expect(computeAdaptiveQuiet(span, 1) / span.to).toBeCloseTo(1, 12)
        expect(computeAdaptiveQuiet(span, 0.5) / Math.sqrt(span.from * span.to)).toBeCloseTo(1, 12)
      }),
    )
  })

  it('is between the two and grows with the level', () => {
    fc.assert(
      fc.property(range, level, level, (span, one, other) => {
        const [low, high] = one <= other ? [one, other] : [other, one]
        const roundOff = 1 + 1e-12
        expect(computeAdaptiveQuiet(span, low)).toBeGreaterThanOrEqual(span.from / roundOff)
        expect(computeAdaptiveQuiet(span, high)).toBeLessThanOrEqual(span.to * roundOff)
        expect(computeAdaptiveQuiet(span, low)).toBeLessThanOrEqual(computeAdaptiveQuiet(span, high) * roundOff)
      }),
    )
  })
})
