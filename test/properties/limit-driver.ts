// A limit in use: calls arrive in bursts, and each gets a slot and uses it now or a little later. Counts whether any period
// had too many.
import fc from 'fast-check'
import type { Millis } from '../../src/clock.ts'
import {
  findEarliestSlot,
  INITIAL_LIMIT_STATE,
  takeSlot,
  type LimitParameters,
  type LimitState,
} from '../../src/model/limit.ts'
import { START } from './support.ts'

export interface Call {
  readonly at: Millis
  readonly cost: number
}

/** Returns when a call that arrives now may be made. */
export type Limiter = (now: Millis, cost: number) => Millis

/** The limit of the model, with its state exposed. */
export class Limit {
  state: LimitState
  readonly numbers: LimitParameters

  constructor(
    numbers: Partial<LimitParameters> & Pick<LimitParameters, 'rate' | 'per'>,
    state: LimitState = INITIAL_LIMIT_STATE,
  ) {
    this.numbers = { burst: 0, cost: 1, ...numbers }
    this.state = state
  }

  reserve(now: Millis, cost = 1): Millis {
    const numbers = { ...this.numbers, cost }
    const at = findEarliestSlot(this.state, numbers, now)
    this.state = takeSlot(this.state, numbers, at, now)
    return at
  }

  /** This many calls at once. */
  reserveAll(calls: number, now: Millis): readonly Millis[] {
    return Array.from({ length: calls }, () => this.reserve(now))
  }
}

/** Calls that arrive together, some time after the previous ones. Relative values, so that they fit any `per` and rate. */
export interface Burst {
  readonly gap: number
  readonly calls: number
  readonly cost: number
}

const share = (max: number): fc.Arbitrary<number> => fc.double({ min: 0, max, noNaN: true })

export const bursts: fc.Arbitrary<readonly Burst[]> = fc.array(
  fc.record({
    gap: fc.oneof(fc.constantFrom(0, 0, 0.999, 1, 1.01, 1.05, 1.1), share(0.3), share(3)),
    calls: fc.integer({ min: 1, max: 8 }),
    cost: fc.oneof(fc.constant(0), share(1)),
  }),
  { minLength: 1, maxLength: 20 },
)

/** Maximum pressure: everything arrives at once. */
export const flood: fc.Arbitrary<readonly Burst[]> = fc
  .integer({ min: 1, max: 80 })
  .map((calls) => [{ gap: 0, calls, cost: 0 }])

export const lateness: fc.Arbitrary<readonly number[]> = fc.array(fc.oneof(fc.constantFrom(0, 1), share(1)), {
  minLength: 1,
  maxLength: 10,
})

export interface Asked {
  readonly now: Millis
  readonly cost: number
}

/** The single requests of some bursts: a whole cost from 1 to `most` each. */
export function requests(list: readonly Burst[], per: Millis, most: number): readonly Asked[] {
  let now = START
  return list.flatMap(({ gap, calls, cost }) => {
    now += Math.floor(gap * per)
    return Array.from({ length: calls }, () => ({ now, cost: 1 + Math.floor(cost * (most - 1)) }))
  })
}

export function slotsOf(limiter: Limiter, asked: readonly Asked[]): readonly Call[] {
  return asked.map(({ now, cost }) => ({ at: limiter(now, cost), cost }))
}

/** The maximum number of calls in any half-open period of this length. */
export function mostWithin(calls: readonly Call[], per: Millis): number {
  const sorted = calls.toSorted((one, other) => one.at - other.at)
  let most = 0
  let held = 0
  let from = 0
  for (const call of sorted) {
    held += call.cost
    // A time of today has only a few thousandths of a millisecond of precision.
    while ((sorted[from]?.at ?? call.at) <= call.at - per + 1e-3) held -= sorted[from++]?.cost ?? 0
    most = Math.max(most, held)
  }
  return most
}

/** Each slot is used a little late, up to `slack`. */
export function usedLate(slots: readonly Call[], late: readonly number[], slack: Millis): readonly Call[] {
  return slots.map(({ at, cost }, n) => ({ at: at + (late[n % late.length] ?? 0) * slack, cost }))
}

/** Windows and, less often, buckets. */
export const shape: fc.Arbitrary<Shape> = fc.record({
  rate: fc.integer({ min: 1, max: 12 }),
  per: fc.oneof(fc.integer({ min: 10, max: 5_000 }), fc.constant(60_000)),
  burst: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 12 }) }),
})
type Shape = Omit<LimitParameters, 'cost'>
export const costliest = ({ rate, burst }: Pick<Shape, 'rate' | 'burst'>): number => (burst > 0 ? burst : rate)

/** A limit after some bursts of calls, and the time of the last call. */
export function worn(numbers: Shape, list: readonly Burst[]): { readonly limit: Limit; readonly now: Millis } {
  const limit = new Limit(numbers)
  const asked = requests(list, numbers.per, costliest(numbers))
  for (const { now, cost } of asked) limit.reserve(now, cost)
  return { limit, now: asked.at(-1)?.now ?? START }
}
