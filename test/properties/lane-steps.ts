// The steps that a random history of one lane is made of: few and round times, so that deadlines meet.
import fc from 'fast-check'
import { NEVER } from '../../src/clock.ts'
import type { ClaimCaps } from '../../src/model/claim.ts'
import type { Placement } from '../../src/model/place.ts'
import type { LaneEnd } from '../../src/model/settle.ts'
import type { LaneAct } from '../../src/model/steer.ts'
import type { Ending, LaneDriver } from './lane-driver.ts'

export const LEASE = 100
const short = fc.constantFrom(0, 10, 50, 100, 120)

export type Step =
  | { readonly kind: 'place'; readonly placement: Placement }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'until-due' | 'drop' }
  | { readonly kind: 'claim'; readonly caps: ClaimCaps }
  | { readonly kind: 'settle'; readonly ending: Ending; readonly end: LaneEnd }
  | { readonly kind: 'steer'; readonly act: LaneAct | { readonly kind: 'hold-for'; readonly ms: number } }
  | { readonly kind: 'letter'; readonly act: 'retry' | 'drop' | 'unblock' }

const placement: fc.Arbitrary<Placement> = fc.record({
  quiet: short,
  max: short,
  maxEvents: fc.constantFrom(3, 1_000),
  maxBytes: fc.constantFrom(8, 1_000),
  jitter: fc.constantFrom(0, 0.5),
  leading: fc.boolean(),
  rank: fc.constantFrom(0, 0, 0, 1),
  size: fc.nat(5),
  cancel: fc.boolean(),
})
const caps: fc.Arbitrary<ClaimCaps> = fc.record({
  maxEvents: fc.constantFrom(1, 2, 1_000),
  maxBytes: fc.constantFrom(1, 6, 1_000),
  lease: fc.constant(LEASE),
  take: fc.constantFrom('all', 'all', 'all', 'first', 'last'),
})
const end: fc.Arbitrary<LaneEnd> = fc.record({
  whileRunning: fc.constantFrom('window', 'requeue'),
  keep: fc.constantFrom(0, 50),
})
const ending: fc.Arbitrary<Ending> = fc.oneof(
  fc.record({ kind: fc.constantFrom('done', 'done', 'dropped', 'released', 'cancelled', 'cancelled') }),
  fc.record({ kind: fc.constantFrom('retry', 'again'), after: short }),
  fc.record({ kind: fc.constant('dead'), block: fc.boolean() }),
)
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('place'), placement }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait'), ms: short }) },
  { weight: 5, arbitrary: fc.constant({ kind: 'until-due' }) },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant('claim'), caps }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('settle'), ending, end }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('steer'),
      act: fc.oneof(
        fc.record({ kind: fc.constantFrom('run-now', 'cancel', 'unhold') }),
        fc.record({ kind: fc.constant('hold-for'), ms: short }),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('letter'), act: fc.constantFrom('retry', 'drop', 'unblock') }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'drop' }) },
)

export function perform(driver: LaneDriver, what: Step): void {
  switch (what.kind) {
    case 'place':
      return driver.place(what.placement)
    case 'wait':
      return driver.wait(what.ms)
    case 'until-due':
      return driver.wait(driver.lane.due === NEVER ? 0 : Math.max(0, driver.lane.due - driver.now))
    case 'claim':
      return void driver.claim(what.caps)
    case 'settle':
      return void driver.settle(what.ending, what.end)
    case 'steer':
      return void driver.steer(
        what.act.kind === 'hold-for'
          ? { kind: 'hold', hold: { reason: 'r', by: 'b', until: driver.now + what.act.ms } }
          : what.act,
      )
    case 'letter':
      return driver.letter(what.act)
    case 'drop':
      return driver.drop()
  }
}
