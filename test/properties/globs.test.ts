// Globs are matched without backtracking: they mean the same as a regular expression, in bounded time.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { globMatcher, createMatcher } from '../../src/flow/globs.ts'

const letters = (...more: readonly string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom('a', 'b', '.', '/', ...more), { minLength: 1, maxLength: 12 }).map((all) => all.join(''))

/** A plain matcher, which is slow for some inputs. */
function expected(glob: string, { source, type }: { readonly source: string; readonly type: string }): boolean {
  const parts = glob.split(/(\*+)/).map((part) => {
    if (!part.startsWith('*')) return part.replaceAll('.', String.raw`\.`)
    return part === '*' ? '[^/]*' : '.*'
  })
  return new RegExp(`^${parts.join('')}$`, 's').test(glob.includes('/') || glob === '**' ? `${source}/${type}` : type)
}

describe('globs', () => {
  it('mean the same as a regular expression', () => {
    const said = fc.property(letters('*', '*', '*'), letters(), letters('\n'), (glob, source, type) => {
      expect(createMatcher([glob], 'on')({ source, type })).toBe(expected(glob, { source, type }))
    })
    fc.assert(said, { numRuns: 2_000 })
  })

  it('are matched in steps that grow with the text and the number of stars, not with glob times text', () => {
    const stars = fc.array(fc.constantFrom('*', '**'), { minLength: 2, maxLength: 6 })
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 80 }), {
      minLength: 7,
      maxLength: 7,
    })
    const texts = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 1_024 })
    fc.assert(
      fc.property(stars, pieces, texts, (some, between, text) => {
        const glob = some.map((star, n) => `${between[n]}${star}`).join('') + (between[6] ?? '')
        const tally = { steps: 0 }
        globMatcher(glob)(text, tally)
        expect(tally.steps).toBeLessThanOrEqual(2 * some.length * (text.length + 1))
      }),
    )
    // Once this took a step for each character of the glob at each character of the text: a quarter of a million.
    const tally = { steps: 0 }
    expect(globMatcher(`*${'a'.repeat(120)}*${'a'.repeat(120)}*b`)(`${'a'.repeat(1_023)}b`, tally)).toBe(true)
    expect(tally.steps).toBeLessThanOrEqual(3 * 2 * 1_025)
  })

  it.for([
    { glob: `${'**a'.repeat(9)}x`, type: 'com.example.'.repeat(8) + 'a'.repeat(60) },
    { glob: `${'*'.repeat(256)}x`, type: 'version.created' },
    { glob: `${'*a'.repeat(60)}*b`, type: 'a'.repeat(250) },
    { glob: '*.*.*.*', type: `${'.'.repeat(1023)}/` },
    { glob: `${'**.'.repeat(80)}/`, type: '.'.repeat(1024) },
  ])('$glob does not match a long type in exponential time', ({ glob, type }) => {
    expect(createMatcher([glob], 'on')({ source: 'strange', type })).toBe(false)
  })
})
