// `Backoff` decides how long a run waits after a failure and when it is dead (L8). A list of n delays means n + 1 attempts.
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { SluiceError } from '../errors.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'

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
  assertRetryOptions(options, flow)
  // A list has no jitter, because its author chose the exact delays.
  const { delays, jitter = 0 } =
    'first' in options ? exponentialDelays(options, flow) : 'delays' in options ? options : { delays: options }
  if (!(jitter >= 0 && jitter < 1)) {
    throw new SluiceError('CONFIG_INVALID', `${flow}.jitter must be from 0 to below 1; got ${jitter}.`)
  }
  const fixed = delays.map((delay, at) => parseDuration(delay, `${flow}[${at}]`))
  const endless = 'first' in options ? -1 : fixed.indexOf(Infinity)
  if (endless >= 0) throw endlessDelay(`${flow}[${endless}]`)
  return {
    tries: fixed.length + 1,
    delay(failures, chance) {
      const delay = fixed[failures - 1]
      return delay === undefined ? undefined : Math.round(delay * (1 + jitter * (2 * chance - 1)))
    },
  }
}

/** `endlessDelay` rejects an infinite delay, because the run would wait for its attempt for ever. */
function endlessDelay(option: string): SluiceError {
  return new SluiceError(
    'CONFIG_INVALID',
    `${option} must be finite. Omit it: the run is then dead after the attempts before it.`,
  )
}

const LIST_OPTIONS: ReadonlySet<string> = new Set(['delays', 'jitter'])
const EXPONENTIAL_OPTIONS: ReadonlySet<string> = new Set(['first', 'factor', 'cap', 'retries', 'jitter'])

function assertRetryOptions(options: unknown, flow: string): void {
  if (Array.isArray(options)) return
  const isObject = typeof options === 'object' && options !== null
  const isListed = isObject && 'delays' in options
  const isGrown = isObject && 'first' in options
  if (isListed === isGrown || (isListed && !Array.isArray(options.delays))) {
    const rule = `a list of delays like ['1s', '5s'], { delays, jitter } or { first: '1s', retries: 5 }`
    throw new SluiceError('CONFIG_INVALID', `${flow} must be ${rule}; got ${JSON.stringify(options)}.`)
  }
  assertKnownOptions(options as object, isListed ? LIST_OPTIONS : EXPONENTIAL_OPTIONS, `${flow}.`)
}

/** Returns the longer one of the delay and the requested delay. */
export function delayWithRetryAfter(delay: Millis, retryAfter: Millis | undefined): Millis {
  return Math.max(delay, Math.min(retryAfter ?? 0, RETRY_AFTER_MAX))
}

const MAX_RETRIES = 1_000

function exponentialDelays(
  options: Extract<RetryOptions, { first: Duration }>,
  flow: string,
): { readonly delays: readonly Millis[]; readonly jitter: number } {
  const { factor = 2, retries, jitter = 0.2 } = options
  if (!(Number.isInteger(retries) && retries >= 0 && retries <= MAX_RETRIES)) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${flow}.retries must be a whole number from 0 to ${MAX_RETRIES}; got ${retries}.`,
    )
  }
  if (!(factor >= 1)) throw new SluiceError('CONFIG_INVALID', `${flow}.factor must be at least 1; got ${factor}.`)
  const first = parseDuration(options.first, `${flow}.first`)
  if (first === Infinity) throw endlessDelay(`${flow}.first`)
  const cap = parseDuration(options.cap ?? Infinity, `${flow}.cap`)
  return { delays: Array.from({ length: retries }, (_, at) => Math.min(cap, first * factor ** at)), jitter }
}
