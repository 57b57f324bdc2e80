// `Backoff` decides how long a run waits after a failure and when it is dead (L8). A list of n delays means n + 1 attempts.
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'

export type RetryOptions =
  | readonly Duration[]
  | { readonly delays: readonly Duration[]; readonly jitter?: number }
  | {
      readonly first: Duration
      readonly factor?: number
      readonly cap?: Duration
      readonly retries: number
      readonly jitter?: number
    }

export interface Backoff {
  readonly tries: number
  /** Returns the delay after this many failures, or undefined if there is no further attempt. `chance` is in [0, 1). */
  delay(failures: number, chance: number): Millis | undefined
}

/** A requested delay counts up to this maximum. */
export const RETRY_AFTER_MAX: Millis = 24 * 3_600_000

export function backoff(options: RetryOptions = DEFAULTS.retry, flow = 'retry'): Backoff {
  const { delays, jitter } = parseDelays(options, flow)
  if (!(jitter >= 0 && jitter < 1)) throw invalidOption(`${flow}.jitter must be from 0 to below 1; got ${jitter}.`)
  return {
    tries: delays.length + 1,
    delay(failures, chance) {
      const delay = delays[failures - 1]
      return delay === undefined ? undefined : Math.round(delay * (1 + jitter * (2 * chance - 1)))
    },
  }
}

interface Delays {
  readonly delays: readonly Millis[]
  readonly jitter: number
}

function parseDelays(options: RetryOptions, flow: string): Delays {
  // A list has no jitter, because its author chose the exact delays.
  if (Array.isArray(options)) return { delays: parseList(options, flow), jitter: 0 }
  const isGrown = typeof options === 'object' && options !== null && 'first' in options
  const isListed = typeof options === 'object' && options !== null && 'delays' in options
  if (isGrown && !isListed) return parseExponential(options, flow)
  if (isListed && !isGrown && Array.isArray(options.delays)) {
    assertKnownOptions(options, ['delays', 'jitter'], `${flow}.`)
    return { delays: parseList(options.delays, flow), jitter: options.jitter ?? 0 }
  }
  const rule = `a list of delays like ['1s', '5s'], { delays, jitter } or { first: '1s', retries: 5 }`
  throw invalidOption(`${flow} must be ${rule}; got ${JSON.stringify(options)}.`)
}

function parseList(delays: readonly Duration[], flow: string): readonly Millis[] {
  return delays.map((delay, at) => parseFinite(delay, `${flow}[${at}]`))
}

/** `parseFinite` rejects an infinite delay, because the run would wait for its attempt for ever. */
function parseFinite(delay: Duration, option: string): Millis {
  const parsed = parseDuration(delay, option)
  if (parsed < Infinity) return parsed
  throw invalidOption(
    `${option} must be finite; got Infinity. Remove this delay: the run then becomes a dead letter after the attempt before it.`,
  )
}

/** Returns the longer one of the delay and the requested delay. */
export function delayWithRetryAfter(delay: Millis, retryAfter: Millis | undefined): Millis {
  return Math.max(delay, Math.min(retryAfter ?? 0, RETRY_AFTER_MAX))
}

const MAX_RETRIES = 1_000

function parseExponential(options: Extract<RetryOptions, { first: Duration }>, flow: string): Delays {
  assertKnownOptions(options, ['first', 'factor', 'cap', 'retries', 'jitter'], `${flow}.`)
  const { factor = 2, retries, jitter = 0.2 } = options
  if (!(Number.isInteger(retries) && retries >= 0 && retries <= MAX_RETRIES))
    throw invalidOption(`${flow}.retries must be a whole number from 0 to ${MAX_RETRIES}; got ${retries}.`)
  if (!(factor >= 1)) throw invalidOption(`${flow}.factor must be at least 1; got ${factor}.`)
  const first = parseFinite(options.first, `${flow}.first`)
  const cap = parseDuration(options.cap ?? Infinity, `${flow}.cap`)
  return { delays: Array.from({ length: retries }, (_, at) => Math.min(cap, first * factor ** at)), jitter }
}
