// How long a run waits after a failure, and when it has failed often enough (L8). A list of n delays is n + 1 tries.
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'

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
  /** The delay after so many failures, or undefined when there is no further try. `chance` is in [0, 1). */
  delay(failures: number, chance: number): Millis | undefined
}

/** The other side may ask for more patience, but not for ever. */
export const RETRY_AFTER_MAX: Millis = 24 * 3_600_000

export function backoff(options: RetryOptions = DEFAULTS.retry, flow = 'retry'): Backoff {
  mustBeOptions(options, flow)
  // A list is literal: somebody chose these numbers.
  const { delays, jitter = 0 } =
    'first' in options ? grown(options, flow) : 'delays' in options ? options : { delays: options }
  if (!(jitter >= 0 && jitter < 1)) {
    throw new SluiceError('CONFIG_INVALID', `${flow}.jitter is ${jitter}; it is a share from 0 to below 1.`)
  }
  const fixed = delays.map((delay, at) => millis(delay, `${flow}[${at}]`))
  const endless = 'first' in options ? -1 : fixed.indexOf(Infinity)
  if (endless >= 0) throw endlessIs(`${flow}[${endless}]`)
  return {
    tries: fixed.length + 1,
    delay(failures, chance) {
      const delay = fixed[failures - 1]
      return delay === undefined ? undefined : Math.round(delay * (1 + jitter * (2 * chance - 1)))
    },
  }
}

/** A try that never comes is none, and its run would wait for it for ever. */
function endlessIs(option: string): SluiceError {
  return new SluiceError(
    'CONFIG_INVALID',
    `${option} is endless; leave it out, and the run is dead after the tries before it.`,
  )
}

const LISTED: ReadonlySet<string> = new Set(['delays', 'jitter'])
const GROWN: ReadonlySet<string> = new Set(['first', 'factor', 'cap', 'retries', 'jitter'])

function mustBeOptions(options: unknown, flow: string): void {
  if (Array.isArray(options)) return
  const isObject = typeof options === 'object' && options !== null
  const isListed = isObject && 'delays' in options
  const isGrown = isObject && 'first' in options
  if (isListed === isGrown || (isListed && !Array.isArray(options.delays))) {
    const fix = `it is a list of delays like ['1s', '5s'], { delays, jitter } or { first: '1s', retries: 5 }`
    throw new SluiceError('CONFIG_INVALID', `${flow} is ${JSON.stringify(options)}; ${fix}.`)
  }
  onlyKnown(options as object, isListed ? LISTED : GROWN, `${flow}.`)
}

/** The delay, or what the other side asked for if that is longer. */
export function patience(delay: Millis, retryAfter: Millis | undefined): Millis {
  return Math.max(delay, Math.min(retryAfter ?? 0, RETRY_AFTER_MAX))
}

const GROWN_MAX = 1_000

function grown(
  options: Extract<RetryOptions, { first: Duration }>,
  flow: string,
): { readonly delays: readonly Millis[]; readonly jitter: number } {
  const { factor = 2, retries, jitter = 0.2 } = options
  if (!(Number.isInteger(retries) && retries >= 0 && retries <= GROWN_MAX)) {
    throw new SluiceError('CONFIG_INVALID', `${flow}.retries is ${retries}; it is a whole number up to ${GROWN_MAX}.`)
  }
  if (!(factor >= 1)) throw new SluiceError('CONFIG_INVALID', `${flow}.factor is ${factor}; it must be at least 1.`)
  const first = millis(options.first, `${flow}.first`)
  if (first === Infinity) throw endlessIs(`${flow}.first`)
  const cap = millis(options.cap ?? Infinity, `${flow}.cap`)
  return { delays: Array.from({ length: retries }, (_, at) => Math.min(cap, first * factor ** at)), jitter }
}
