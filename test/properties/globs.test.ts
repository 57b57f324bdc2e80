// Globs are matched without ever trying again what failed: they mean what a regular expression would, and take no such time.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matcher } from '../../src/model/globs.ts'

const letters = (...more: readonly string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom('a', 'b', '.', '/', ...more), { minLength: 1, maxLength: 12 }).map((all) => all.join(''))

/** Plain, and slow where somebody wants it to be. */
function expected(glob: string, { source, type }: { readonly source: string; readonly type: string }): boolean {
  const parts = glob.split(/(\*+)/).map((part) => {
    if (!part.startsWith('*')) return part.replaceAll('.', String.raw`\.`)
    return part === '*' ? '[^/]*' : '.*'
  })
  return new RegExp(`^${parts.join('')}$`, 's').test(glob.includes('/') || glob === '**' ? `${source}/${type}` : type)
}

describe('globs', () => {
  it('mean what an expression would', () => {
    const said = fc.property(letters('*', '*', '*'), letters(), letters('\n'), (glob, source, type) => {
      expect(matcher([glob], 'on')({ source, type })).toBe(expected(glob, { source, type }))
    })
    fc.assert(said, { numRuns: 2_000 })
  })

  it.for([
    { glob: `${'**a'.repeat(9)}x`, type: 'com.example.'.repeat(8) + 'a'.repeat(60) },
    { glob: `${'*'.repeat(256)}x`, type: 'version.created' },
    { glob: `${'*a'.repeat(60)}*b`, type: 'a'.repeat(250) },
    { glob: '*.*.*.*', type: `${'.'.repeat(1023)}/` },
    { glob: `${'**.'.repeat(80)}/`, type: '.'.repeat(1024) },
  ])('$glob does not match a long type in exponential time', { timeout: 60_000 }, ({ glob, type }) => {
    expect(matcher([glob], 'on')({ source: 'strange', type })).toBe(false)
  })
})
