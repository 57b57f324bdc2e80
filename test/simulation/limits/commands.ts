// The commands of a history of calls under limits: bursts of requests by several callers, which come on time, too late,
// twice or never, while somebody pauses a limit from time to time (M1 to M7).
import fc from 'fast-check'
import type { LimitParameters } from '../../../src/model/limit.ts'

export interface NamedLimit extends Omit<LimitParameters, 'cost'> {
  readonly name: string
}

/** Few and small, so that callers compete. */
export const LIMITS: readonly NamedLimit[] = [
  { name: 'three a second', rate: 3, per: 1000, burst: 0 },
  { name: 'one in 100 ms', rate: 1, per: 100, burst: 0 },
  { name: 'five in 10 s', rate: 5, per: 10_000, burst: 0 },
  { name: 'bucket of four', rate: 2, per: 1000, burst: 4 },
  { name: 'fifty a second', rate: 50, per: 1000, burst: 0 },
]

export type LimitCommand =
  | { readonly kind: 'ask'; readonly limits: number; readonly cost: number; readonly callers: number }
  | { readonly kind: 'advance'; readonly by: number }
  /** This many waiting callers are served, each at its own time. */
  | { readonly kind: 'serve'; readonly callers: number }
  /** One caller asks again, whether its time has come or not. */
  | { readonly kind: 'snoozed'; readonly ticket: number }
  | { readonly kind: 'forget'; readonly ticket: number }
  | { readonly kind: 'release'; readonly ticket: number }
  | { readonly kind: 'pause'; readonly limit: number; readonly for: number; readonly slow: boolean }
  | { readonly kind: 'resume'; readonly limit: number }
  /** The API reports how many calls it has counted: a share of the rate, in eighths. */
  | { readonly kind: 'observe'; readonly limit: number; readonly eighths: number }
  /** Calls that left late count once more. */
  | { readonly kind: 'charge'; readonly limit: number; readonly cost: number }

const of = <K extends string>(kind: K): { kind: fc.Arbitrary<K> } => ({ kind: fc.constant(kind) })
const small = fc.nat({ max: 7 })
const limit = fc.nat({ max: LIMITS.length - 1 })

const calm: readonly fc.WeightedArbitrary<LimitCommand>[] = [
  {
    // 0 to 4 mean one limit, higher numbers mean two at once.
    arbitrary: fc.record({
      ...of('ask'),
      limits: fc.nat({ max: LIMITS.length + 2 }),
      cost: fc.constantFrom(1, 1, 1, 2, 3, 60),
      callers: fc.integer({ min: 1, max: 4 }),
    }),
    weight: 8,
  },
  { arbitrary: fc.record({ ...of('advance'), by: fc.constantFrom(0, 1, 10, 99, 100, 330, 1000, 1100) }), weight: 4 },
  { arbitrary: fc.record({ ...of('serve'), callers: fc.integer({ min: 1, max: 6 }) }), weight: 8 },
  { arbitrary: fc.record({ ...of('snoozed'), ticket: small }), weight: 3 },
]
const troubled: readonly fc.WeightedArbitrary<LimitCommand>[] = [
  ...calm,
  { arbitrary: fc.record({ ...of('forget'), ticket: small }), weight: 1 },
  { arbitrary: fc.record({ ...of('release'), ticket: small }), weight: 2 },
  {
    arbitrary: fc.record({
      ...of('pause'),
      limit,
      for: fc.constantFrom(50, 500, 3000),
      slow: fc.boolean(),
    }),
    weight: 2,
  },
  { arbitrary: fc.record({ ...of('resume'), limit }), weight: 1 },
  { arbitrary: fc.record({ ...of('observe'), limit, eighths: small }), weight: 2 },
  { arbitrary: fc.record({ ...of('charge'), limit, cost: fc.constantFrom(1, 1, 2) }), weight: 1 },
]

export function limitHistories(steps: number): fc.Arbitrary<readonly LimitCommand[]> {
  const list = (commands: readonly fc.WeightedArbitrary<LimitCommand>[]): fc.Arbitrary<readonly LimitCommand[]> =>
    fc.array(fc.oneof(...commands), { minLength: 1, maxLength: steps, size: 'max' })
  return fc.oneof(list(calm), list(troubled))
}
