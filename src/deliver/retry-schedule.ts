// `createDeliverySchedule` decides when a failed batch is posted again, and when it is given up (D4).
import type { Millis } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { FailedAttempt } from '../model/flow.ts'
import { SluiceError } from '../errors.ts'

export interface DeliverySchedule {
  /** The number of attempts if no response has a Retry-After. */
  readonly tries: number
  /** Returns undefined after the last attempt. */
  delay(at: FailedAttempt): Millis | undefined
}

const FIRST_DELAYS: readonly Millis[] = [5_000, 30_000, 120_000, 300_000]
/** The head of the lane is the probe. A longer gap would delay the recovery of a repaired endpoint. */
const LATER_DELAY: Millis = 900_000
const TOTAL_TIME: Millis = 75 * 3_600_000
const JITTER = 0.2
const RETRY_AFTER_MAX: Millis = 24 * 3_600_000

/** `createDeliverySchedule` takes a given list literally: n delays mean n + 1 attempts, however long they take. */
export function createDeliverySchedule(list?: readonly Duration[], option = 'retry'): DeliverySchedule {
  return list === undefined
    ? DEFAULT_SCHEDULE
    : literalSchedule(list.map((delay, at) => parseFiniteDelay(delay, `${option}[${at}]`)))
}

const DEFAULT_SCHEDULE: DeliverySchedule = {
  tries:
    FIRST_DELAYS.length +
    Math.floor((TOTAL_TIME - FIRST_DELAYS.reduce((sum, delay) => sum + delay, 0)) / LATER_DELAY) +
    1,
  delay({ failures, elapsed, random: chance, requestedDelay: asked }) {
    const delay = FIRST_DELAYS[failures - 1] ?? LATER_DELAY
    // The decision must not depend on the jitter, because it is made more than once per attempt.
    if (elapsed + delay * (1 + JITTER) > TOTAL_TIME) return undefined
    return withRetryAfter(Math.round(delay * (1 + JITTER * (2 * chance - 1))), asked)
  },
}

function literalSchedule(delays: readonly Millis[]): DeliverySchedule {
  return {
    tries: delays.length + 1,
    delay({ failures, requestedDelay: asked }) {
      const delay = delays[failures - 1]
      return delay === undefined ? undefined : withRetryAfter(delay, asked)
    },
  }
}

function withRetryAfter(delay: Millis, asked: Millis = 0): Millis {
  return Math.max(delay, Math.min(asked, RETRY_AFTER_MAX))
}

/** An infinite delay would keep the batch waiting forever. */
function parseFiniteDelay(delay: Duration, option: string): Millis {
  const value = parseDuration(delay, option)
  if (Number.isFinite(value)) return value
  throw new SluiceError('CONFIG_INVALID', `${option} must be finite. Omit it to end the schedule before it.`)
}
