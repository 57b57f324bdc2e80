// A window as a flow states it becomes the numbers that go along with each event (L3, L22).
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import type { WindowNumbers } from '../model/place.ts'
import { adaptiveQuiet } from '../model/pressure.ts'

export interface WindowOptions {
  /** The lane must have been still for so long. With a range it grows under pressure. */
  readonly quiet?: Duration | { readonly from: Duration; readonly to: Duration }
  /** So long after the first event, whatever comes. */
  readonly every?: Duration
  /** No event waits longer than this for its window; 10 × quiet unless said, Infinity must be said. */
  readonly max?: Duration
  readonly maxEvents?: number
  readonly maxBytes?: number
  /** 0 to 1: spreads `quiet`, never `max`. */
  readonly jitter?: number
  /** The first event after a stillness is due at once. */
  readonly leading?: boolean
}

interface Range {
  readonly from: Millis
  readonly to: Millis
}

/** A window that was checked; `numbers` are those under a pressure from 0 to 1. */
export interface Window {
  readonly max: Millis
  numbers(level: number): WindowNumbers
}

/** Checked when the app is built: contradictions are refused in one message. */
export function window(options: WindowOptions = {}, flow = 'window'): Window {
  const quiet = quietOf(options, flow)
  const max = maxOf(options, quiet, flow)
  if (quiet.to > max && options.every === undefined) {
    throw new SluiceError('CONFIG_INVALID', `${flow}.max (${max} ms) is below its quiet (${quiet.to} ms).`)
  }
  return checked(options, quiet, max, flow)
}

/** One that a function returned for one event: never throws over a `max` below `quiet`, which then counts as both. */
export function windowOf(options: WindowOptions = {}, flow = 'window'): Window {
  const quiet = quietOf(options, flow)
  const max = maxOf(options, quiet, flow)
  const held = options.every === undefined ? { from: Math.min(quiet.from, max), to: Math.min(quiet.to, max) } : quiet
  return checked(options, held, max, flow)
}

const OPTIONS: ReadonlySet<string> = new Set<keyof WindowOptions>([
  'quiet',
  'every',
  'max',
  'maxEvents',
  'maxBytes',
  'jitter',
  'leading',
])

function mustBeOptions(options: unknown, flow: string): void {
  if (typeof options !== 'object' || options === null) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${flow} is ${JSON.stringify(options)}; it is an object like { quiet: '10s' }.`,
    )
  }
  onlyKnown(options, OPTIONS, `${flow}.`)
}

function checked(options: WindowOptions, quiet: Range, max: Millis, flow: string): Window {
  const maxEvents = atLeast(1, options.maxEvents ?? DEFAULTS.maxEvents, `${flow}.maxEvents`)
  if (!Number.isInteger(maxEvents) && maxEvents < Infinity) {
    throw new SluiceError('CONFIG_INVALID', `${flow}.maxEvents is ${maxEvents}; it is a whole number.`)
  }
  const maxBytes = atLeast(1, options.maxBytes ?? DEFAULTS.maxBytes, `${flow}.maxBytes`)
  const jitter = atLeast(0, options.jitter ?? 0, `${flow}.jitter`)
  if (jitter > 1) throw new SluiceError('CONFIG_INVALID', `${flow}.jitter is ${jitter}; it is a share from 0 to 1.`)
  const leading = options.leading ?? false
  if (leading && options.quiet === undefined) {
    throw new SluiceError('CONFIG_INVALID', `${flow}.leading means nothing without quiet.`)
  }
  const fixed = { max, maxEvents, maxBytes, jitter, leading }
  return {
    max,
    numbers: (level) => ({ ...fixed, quiet: quiet.from === quiet.to ? quiet.from : adaptiveQuiet(quiet, level) }),
  }
}

function quietOf(options: WindowOptions, flow: string): Range {
  mustBeOptions(options, flow)
  const { quiet, every } = options
  if (quiet !== undefined && every !== undefined) {
    throw new SluiceError('CONFIG_INVALID', `${flow} has both quiet and every; a window is one or the other.`)
  }
  if (every !== undefined) return { from: Infinity, to: Infinity }
  if (quiet === undefined) return { from: 0, to: 0 }
  if (typeof quiet !== 'object') return { from: millis(quiet, `${flow}.quiet`), to: millis(quiet, `${flow}.quiet`) }
  const range = { from: millis(quiet.from, `${flow}.quiet.from`), to: millis(quiet.to, `${flow}.quiet.to`) }
  if (range.from > 0 && range.from <= range.to) return range
  throw new SluiceError(
    'CONFIG_INVALID',
    `${flow}.quiet goes from ${range.from} to ${range.to} ms; it must rise from above 0.`,
  )
}

function maxOf({ every, max }: WindowOptions, quiet: Range, flow: string): Millis {
  if (every !== undefined) {
    if (max !== undefined) throw new SluiceError('CONFIG_INVALID', `${flow} has every and max; every is its own max.`)
    return millis(every, `${flow}.every`)
  }
  if (max !== undefined) return millis(max, `${flow}.max`)
  if (quiet.to < Infinity) return quiet.to * DEFAULTS.maxPerQuiet
  throw new SluiceError('CONFIG_INVALID', `${flow}.quiet is endless; say how long an event may wait with max or every.`)
}

function atLeast(least: number, value: number, option: string): number {
  if (value >= least) return value
  throw new SluiceError('CONFIG_INVALID', `${option} is ${value}; it must be at least ${least}.`)
}
