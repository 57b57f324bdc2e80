// Property tests use the same values every time; only the long simulation runs use random seeds.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SEED } from '../seeded-fast-check.ts'

it('every property has the same seed', () => {
  expect(fc.readConfigureGlobal()).toEqual({ seed: SEED })
  const seen: number[] = []
  fc.assert(
    fc.property(fc.nat(), (n) => void seen.push(n)),
    { numRuns: 5 },
  )
  expect(seen).toEqual(fc.sample(fc.nat(), { seed: SEED, numRuns: 5 }))
})
