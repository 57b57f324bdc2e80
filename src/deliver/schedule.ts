// When a batch that failed is posted again, and when that has gone on for long enough (D4).
import type { Millis } from '../clock.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { FailedTry } from '../model/flow.ts'
import { SluiceError } from '../errors.ts'

export interface DeliverySchedule {
  /** How often a batch is posted, if nobody asks for patience. */
  readonly tries: number
  /** Undefined: it was the last try. */
  delay(at: FailedTry): Millis | undefined
}

const FIRST: readonly Millis[] = [5_000, 30_000, 120_000, 300_000]
/** The head of the line is the probe: no further apart than somebody who has mended it would wait. */
const THEN: Millis = 900_000
const TOTAL: Millis = 75 * 3_600_000
const JITTER = 0.2
const ASKED_MAX: Millis = 24 * 3_600_000

/** A list that is given is literal: these delays, one try more than there are of them, whatever time it takes. */
export function deliverySchedule(list?: readonly Duration[], option = 'retry'): DeliverySchedule {
  return list === undefined ? USUAL : literal(list.map((delay, at) => finite(delay, `${option}[${at}]`)))
}

const USUAL: DeliverySchedule = {
  tries: FIRST.length + Math.floor((TOTAL - FIRST.reduce((sum, delay) => sum + delay, 0)) / THEN) + 1,
  delay({ failures, elapsed, chance, asked }) {
    const delay = FIRST[failures - 1] ?? THEN
    // Whether it was the last is no matter of chance: it is asked more than once.
    if (elapsed + delay * (1 + JITTER) > TOTAL) return undefined
    return patient(Math.round(delay * (1 + JITTER * (2 * chance - 1))), asked)
  },
}

function literal(delays: readonly Millis[]): DeliverySchedule {
  return {
    tries: delays.length + 1,
    delay({ failures, asked }) {
      const delay = delays[failures - 1]
      return delay === undefined ? undefined : patient(delay, asked)
    },
  }
}

function patient(delay: Millis, asked: Millis = 0): Millis {
  return Math.max(delay, Math.min(asked, ASKED_MAX))
}

/** A try that never comes is none, and its batch would wait for it for ever. */
function finite(delay: Duration, option: string): Millis {
  const value = millis(delay, option)
  if (Number.isFinite(value)) return value
  throw new SluiceError('CONFIG_INVALID', `${option} is endless; leave it out, and the tries before it are all.`)
}
