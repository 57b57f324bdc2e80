// Shared by the property tests: a lane to start from, a counter like a store's, and the error for an option.
import { SluiceError } from '../../src/errors.ts'
import { laneId } from '../../src/model/identity.ts'
import { createLane, type DrawNumber, type Lane } from '../../src/model/lane.ts'
import type { PlacementParameters } from '../../src/model/place.ts'

/** A time of today: sums that are only exact near zero fail here. */
export const START = 1_700_000_000_000

export function counter(from = 0): DrawNumber {
  let last = from
  return () => ++last
}

export function freshLane(key = 'key'): Lane {
  return createLane({ id: laneId('flow', key), flow: 'flow', key, tenant: '', group: '' })
}

/** An event that arrives alone, without a window. */
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

/** The error with which an invalid option is rejected. Any other error, or none, is a failure. */
export function refusal(attempt: () => unknown): SluiceError {
  try {
    attempt()
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'CONFIG_INVALID') return error
    throw error
  }
  throw new Error('It was not refused.')
}
