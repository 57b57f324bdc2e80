// Durations are the first thing that users write: each spelling means one number, and the error for an invalid one names its option.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDuration, type Duration } from '../../src/model/duration.ts'
import { refusal } from './support.ts'

const UNITS = [
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
] as const

describe('durations', () => {
  it('a whole amount of a unit is exactly that many milliseconds', () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.constantFrom(...UNITS), (amount, [unit, size]) => {
        expect(parseDuration(`${amount}${unit}`, 'x')).toBe(amount * size)
      }),
    )
  })

  it('a decimal amount is exact to a millionth', () => {
    fc.assert(
      fc.property(fc.nat(9_999), fc.nat(999), fc.constantFrom(...UNITS), (whole, thousandths, [unit, size]) => {
        const written = `${whole}.${String(thousandths).padStart(3, '0')}${unit}` as Duration
        const exact = ((whole * 1_000 + thousandths) * size) / 1_000
        expect(Math.abs(parseDuration(written, 'x') - exact)).toBeLessThanOrEqual(1e-6 * Math.max(1, exact))
      }),
    )
  })

  it('a number means milliseconds, including Infinity', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true }), (number) => {
        expect(parseDuration(number, 'x')).toBe(number)
      }),
    )
    expect(parseDuration(Infinity, 'x')).toBe(Infinity)
  })

  it('a longer duration never has fewer milliseconds', () => {
    const written = fc.tuple(fc.nat(5_000), fc.constantFrom(...UNITS))
    fc.assert(
      fc.property(written, written, ([one, [unit, size]], [other, [otherUnit, otherSize]]) => {
        const order = Math.sign(one * size - other * otherSize)
        expect(Math.sign(parseDuration(`${one}${unit}`, 'x') - parseDuration(`${other}${otherUnit}`, 'x'))).toBe(order)
      }),
    )
  })

  const NONSENSE = [
    '',
    '5',
    's',
    'ms',
    '-1s',
    '+1s',
    '1 s',
    ' 1s',
    '1s ',
    '1S',
    '1e3s',
    '.5s',
    '1.s',
    '1,5s',
    '1w',
    '1s\n',
  ]
  const STRANGE = [
    'Infinitys',
    'NaNs',
    '٣s',
    '1m30s',
    '0x1s',
    '1_000ms',
    Number.NaN,
    -1,
    -Infinity,
    undefined,
    null,
    {},
  ]

  it.each([...NONSENSE, ...STRANGE])('%j is rejected with a message that names the option', (wrong) => {
    expect(refusal(() => parseDuration(wrong as Duration, 'rank.window.quiet')).message).toContain('rank.window.quiet')
  })

  it('any text is either rejected or a number from 0 up, never NaN', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9.eE+-]{1,6}(ms|s|m|h|d|w)?$/))
    fc.assert(
      fc.property(text, (written) => {
        try {
          expect(parseDuration(written as Duration, 'x')).toBeGreaterThanOrEqual(0)
        } catch {
          expect(refusal(() => parseDuration(written as Duration, 'x')).message).toContain('x must be a duration')
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
