// `parseLimitOptions` checks the options of a limit when the app is built. It rejects a limit that it cannot enforce.
import { NEVER, type Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertKnownOptions, assertWholeNumber, invalidOption } from '../validate/options.ts'

export interface LimitOptions {
  /** The maximum number of calls in any period of length `per`, over all processes. */
  rate: number
  per: Duration
  /** Uses a token bucket of this capacity, refilled with `rate` tokens per `per`, instead of the exact window. */
  burst?: number
  /** A run whose slot is further away is deferred (default 10 s). Calls outside of runs wait as long as it takes. */
  maxWait?: Duration
  /** How often `fetch` repeats a request that was rejected with a time to wait (default 0). */
  retries?: number
}

export interface LimitSettings {
  readonly rate: number
  readonly per: Millis
  readonly burst: number
  readonly maxWait: Millis
  readonly retries: number
}

/** A slot stays fresh for a tenth of `per`. With a shorter `per`, a store on disk could never answer in time. */
export const MIN_PER: Millis = 100

export function limitTitle(name: string): string {
  return `limit(${JSON.stringify(name)})`
}

export function parseLimitOptions(name: string, options: LimitOptions): LimitSettings {
  const title = limitTitle(name)
  if (typeof name !== 'string' || name === '') {
    throw invalidOption(`${title} must have a name that all processes share.`)
  }
  if (name.includes('/')) {
    const twin = `${limitTitle(name.slice(0, name.indexOf('/')))}.per(${JSON.stringify(name.slice(name.indexOf('/') + 1))})`
    throw invalidOption(
      `${title} must not have a slash in its name: ${twin} has the same name and would share its slots.`,
    )
  }
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(`${title} must have options with rate and per, e.g. { rate: 3, per: '1s' }.`)
  }
  assertKnownOptions(options, ['rate', 'per', 'burst', 'maxWait', 'retries'], `${title}.`)
  const burst = assertWholeNumber(options.burst ?? 0, 0, `${title}.burst`)
  return {
    rate: parseRate(options.rate, burst, `${title}.rate`),
    per: parsePer(options.per, `${title}.per`),
    burst,
    maxWait: Math.min(parseDuration(options.maxWait ?? DEFAULTS.maxWait, `${title}.maxWait`), NEVER),
    retries: assertWholeNumber(options.retries ?? 0, 0, `${title}.retries`),
  }
}

/** A bucket may have a fractional rate. An exact window would never grant a fraction of a call. */
function parseRate(rate: number, burst: number, option: string): number {
  if (burst === 0) return assertWholeNumber(rate, 1, option, ' (for fewer calls, raise per)')
  if (Number.isFinite(rate) && rate > 0) return rate
  throw invalidOption(`${option} must be a number above 0; got ${String(rate)}.`)
}

function parsePer(per: Duration, option: string): Millis {
  const length = parseDuration(per, option)
  if (length >= MIN_PER && length < NEVER) return length
  const fix = `A rate of 5 in '10ms' is a rate of 50 in '100ms'`
  throw invalidOption(`${option} must be finite and at least '${MIN_PER}ms'; got ${length} ms. ${fix}.`)
}
