// What the property tests share: a lane to start from, a counter like a store's, and the refusal of an option.
import { SluiceError } from '../../src/errors.ts'
import { laneId } from '../../src/model/identity.ts'
import { createLane, type DrawNumber, type Lane } from '../../src/model/lane.ts'
import type { PlacementParameters } from '../../src/model/place.ts'

/** A moment of today's size: sums that only hold near zero fail here. */
export const START = 1_700_000_000_000

export function counter(from = 0): DrawNumber {
  let last = from
  return () => ++last
}

export function freshLane(key = 'key'): Lane {
  return createLane({ id: laneId('flow', key), flow: 'flow', key, tenant: '', group: '' })
}

/** An event that comes alone, without a window. */
export const PLAIN: PlacementParameters = {
  quiet: 0,
  max: 0,
  maxEvents: 1_000,
  maxBytes: 1_000_000,
  jitter: 0,
  leading: false,
  rank: 0,
  size: 1,
  cancel: false,
}

/** The error a wrong option is refused with. Anything else that is thrown, or nothing, is a failure. */
export function refusal(attempt: () => unknown): SluiceError {
  try {
    attempt()
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'CONFIG_INVALID') return error
    throw error
  }
  throw new Error('It was not refused.')
}
