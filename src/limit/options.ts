// What an app may say about a limit, checked when the app is built: a limit that could not hold is refused, not bent.
import { NEVER, type Millis } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'

export interface LimitOptions {
  /** So many calls in any stretch of time as long as `per`, over all processes. */
  rate: number
  per: Duration
  /** A token bucket of this capacity that fills by `rate` in `per`, instead of the exact window. */
  burst?: number
  /** A run whose slot is further away is put off; 10 s unless said. Calls outside of runs wait as long as it takes. */
  maxWait?: Duration
  /** How often `fetch` repeats a request that was refused with a time to wait; 0 unless said. */
  retries?: number
}

export interface LimitSettings {
  readonly rate: number
  readonly per: Millis
  readonly burst: number
  readonly maxWait: Millis
  readonly retries: number
}

const KNOWN: ReadonlySet<string> = new Set<keyof LimitOptions>(['rate', 'per', 'burst', 'maxWait', 'retries'])
/** A slot stays fresh for a tenth of `per`; below this a store on a disk could not answer in time, ever. */
export const SHORTEST_PER: Millis = 100

/** How a limit is called in messages. */
export function titleOf(name: string): string {
  return `limit(${JSON.stringify(name)})`
}

export function limitSettings(name: string, options: LimitOptions): LimitSettings {
  const title = titleOf(name)
  if (typeof name !== 'string' || name === '') {
    throw invalid(`${title} has no name; give it one that all processes share.`)
  }
  if (name.includes('/')) {
    const twin = `${titleOf(name.slice(0, name.indexOf('/')))}.per(${JSON.stringify(name.slice(name.indexOf('/') + 1))})`
    throw invalid(`${title} has a slash in its name; ${twin} is called the same, and would share its slots.`)
  }
  if (typeof options !== 'object' || options === null) {
    throw invalid(`${title} has no options; say rate and per: { rate: 3, per: '1s' }.`)
  }
  onlyKnown(options, KNOWN, `${title}.`)
  const burst = whole(options.burst ?? 0, 0, `${title}.burst`)
  return {
    rate: rateOf(options.rate, burst, `${title}.rate`),
    per: perOf(options.per, `${title}.per`),
    burst,
    maxWait: Math.min(millis(options.maxWait ?? DEFAULTS.maxWait, `${title}.maxWait`), NEVER),
    retries: whole(options.retries ?? 0, 0, `${title}.retries`),
  }
}

/** A bucket may fill by a fraction; in an exact window a fraction would never be given. */
function rateOf(rate: number, burst: number, option: string): number {
  if (burst === 0) return whole(rate, 1, option, ' (fewer: lengthen per)')
  if (Number.isFinite(rate) && rate > 0) return rate
  throw invalid(`${option} is ${String(rate)}; it is a number above 0.`)
}

function perOf(per: Duration, option: string): Millis {
  const length = millis(per, option)
  if (length >= SHORTEST_PER && length < NEVER) return length
  const fix = `it is from '${SHORTEST_PER}ms' up: a rate of 5 in '10ms' is one of 50 in '100ms'`
  throw invalid(`${option} is ${length} ms; ${fix}.`)
}

/** Also of a single call: what `cost` may be. */
export function whole(value: number, least: number, option: string, hint = ''): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  throw invalid(`${option} is ${String(value)}; it is a whole number of at least ${least}${hint}.`)
}

export function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', what)
}
