// The start of most tests about one lane: the lane has just been claimed.
import type { ClaimCaps } from '../../src/model/claim.ts'
import type { RunEndOptions } from '../../src/model/settle.ts'
import { LaneDriver } from './lane-driver.ts'
import { PLAIN } from './support.ts'

export const LEASE = 10_000
export const ALL: ClaimCaps = { maxEvents: 1_000, maxBytes: 1_000_000, lease: LEASE, take: 'all' }
export const WINDOW: RunEndOptions = { whileRunning: 'window', keep: 0 }

/** A driver whose lane runs: this many events arrived, each with this max, and the run took what these caps allow. */
export function running(events: number, caps: ClaimCaps = ALL, max = 5_000): LaneDriver {
  const driver = new LaneDriver()
  for (let n = 0; n < events; n++) driver.place({ ...PLAIN, max })
  if (driver.claim(caps) !== 'take') throw new Error('The lane was not due.')
  return driver
}
