// The steps of random histories of one lane: few and round times, so that deadlines are often equal.
import fc from 'fast-check'
import { NEVER } from '../../src/clock.ts'
import type { ClaimCaps } from '../../src/model/claim.ts'
import type { PlacementParameters } from '../../src/model/place.ts'
import type { RunEndOptions } from '../../src/model/settle.ts'
import type { SteerAction } from '../../src/model/steer.ts'
import type { Ending, LaneDriver } from './lane-driver.ts'

export const LEASE = 100
const short = fc.constantFrom(0, 10, 50, 100, 120)

export type Step =
  | { readonly kind: 'place'; readonly placement: PlacementParameters }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'lapse' | 'drop' }
  | { readonly kind: 'claim'; readonly caps: ClaimCaps; readonly early: boolean }
  | { readonly kind: 'settle'; readonly ending: Ending; readonly end: RunEndOptions }
  | { readonly kind: 'steer'; readonly act: SteerAction | { readonly kind: 'hold-for'; readonly ms: number } }
  | { readonly kind: 'dead-letter'; readonly act: 'retry' | 'drop' | 'unblock' }

const placement: fc.Arbitrary<PlacementParameters> = fc.record({
  quiet: short,
  max: fc.constantFrom(0, 60, 120, 120, 400, 400),
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
const end: fc.Arbitrary<RunEndOptions> = fc.record({
  whileRunning: fc.constantFrom('window', 'requeue'),
  keep: fc.constantFrom(0, 50),
})
const ending: fc.Arbitrary<Ending> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('obey', 'obey', 'cancelled') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('done', 'dropped', 'released') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('retry', 'snoozed'), after: short }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('dead'), block: fc.boolean() }) },
)
const person: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('steer'),
    act: fc.oneof(
      fc.record({ kind: fc.constantFrom('run-now', 'cancel', 'unhold') }),
      fc.record({ kind: fc.constant('hold-for'), ms: short }),
    ),
  }),
  fc.record({ kind: fc.constant('dead-letter'), act: fc.constantFrom('retry', 'retry', 'drop', 'unblock') }),
)
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 14, arbitrary: fc.record({ kind: fc.constant('place'), placement }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(10, 10, 50) }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'lapse' }) },
  {
    weight: 14,
    arbitrary: fc.record({ kind: fc.constant('claim'), caps, early: fc.constantFrom(false, false, true) }),
  },
  { weight: 14, arbitrary: fc.record({ kind: fc.constant('settle'), ending, end }) },
  { weight: 10, arbitrary: person },
  { weight: 1, arbitrary: fc.constant({ kind: 'drop' }) },
)

export function perform(driver: LaneDriver, what: Step): void {
  switch (what.kind) {
    case 'place':
      return driver.place(what.placement)
    case 'wait':
      return driver.wait(what.ms)
    case 'lapse':
      return driver.run?.running === true ? waitUntilDue(driver) : undefined
    case 'claim':
      if (!what.early && driver.run?.running !== true) waitUntilDue(driver)
      return void driver.claim(what.caps)
    case 'settle':
      return void driver.settle(what.ending, what.end)
    case 'steer':
      return void driver.steer(
        what.act.kind === 'hold-for'
          ? { kind: 'hold', hold: { reason: 'r', by: 'b', until: driver.now + what.act.ms } }
          : what.act,
      )
    case 'dead-letter':
      return driver.deadLetter(what.act)
    case 'drop':
      return driver.drop()
  }
}

export function waitUntilDue(driver: LaneDriver): void {
  if (driver.lane.due !== NEVER) driver.wait(Math.max(0, driver.lane.due - driver.now))
}
