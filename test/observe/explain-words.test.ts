// The words of a sentence: readable times, and texts of strangers that cannot leave their quotes.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatCount, toSafeJson, quote, formatDuration, formatRelativeTime } from '../../src/observe/explain/format.ts'

it('durations have a suitable unit', () => {
  const lengths = [0, 999, 1_000, 7_240, 59_940, 60_000, 90_000, 3_600_000, 5 * 3_600_000 + 360_000, 172_800_000]
  expect(lengths.map(formatDuration)).toEqual([
    '0 ms',
    '999 ms',
    '1 s',
    '7.2 s',
    '59.9 s',
    '1 minute',
    '1.5 minutes',
    '1 hour',
    '5.1 hours',
    '2 days',
  ])
  expect([formatRelativeTime(0), formatRelativeTime(7_200), formatRelativeTime(-180_000)]).toEqual([
    'now',
    'in 7.2 s',
    '3 minutes ago',
  ])
  expect([formatCount(1, 'try', 'tries'), formatCount(2, 'try', 'tries'), formatCount(0, 'lane')]).toEqual([
    '1 try',
    '2 tries',
    '0 lanes',
  ])
})

it('a key is quoted, cut at 80 characters, and unambiguous', () => {
  expect(quote('k')).toBe('"k"')
  expect(quote('x'.repeat(80))).toBe(`"${'x'.repeat(80)}"`)
  expect(quote('x'.repeat(81))).toBe(`"${'x'.repeat(80)}…"`)
  expect(quote('a"; is done.\nLane "b')).toBe(String.raw`"a\"; is done.\nLane \"b"`)
  expect(quote('\u202etxt\u2028\u001b[31m\u0085')).toBe(String.raw`"\u202etxt\u2028\u001b[31m\u0085"`)
})

it('no text leaves its line, its quotes or its maximum length', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.nat(100), (text, most) => {
      const shown = quote(text, most)
      expect(shown.length).toBeLessThanOrEqual(most + 3)
      expect(shown).toMatch(/^"[^\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]*"$/u)
      const back = JSON.parse(shown) as string
      expect(back === text || (back.endsWith('…') && text.startsWith(back.slice(0, -1)))).toBe(true)
      expect(JSON.parse(toSafeJson(text))).toBe(text)
    }),
  )
})
