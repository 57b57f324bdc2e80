// These functions turn the window options of a flow into the numbers that are stored with each event (L3, L22).
import type { Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import { type WindowParameters, computeAdaptiveQuiet } from '../model/place.ts'

const WINDOW_OPTIONS: ReadonlySet<string> = new Set<keyof WindowOptions>([
  'quiet',
  'every',
  'max',
  'maxEvents',
  'maxBytes',
  'jitter',
  'leading',
])

export interface WindowOptions {
  /** The quiet period before the lane is due. A range makes it grow under pressure. */
  readonly quiet?: Duration | { readonly from: Duration; readonly to: Duration }
  /** The time from the first event until the lane is due. */
  readonly every?: Duration
  /** The longest time an event waits for its window (default 10 × quiet). An unbounded window must set Infinity. */
  readonly max?: Duration
  readonly maxEvents?: number
  readonly maxBytes?: number
  /** From 0 to 1; spreads `quiet` and never `max`. */
  readonly jitter?: number
  /** Whether the first event after a quiet period is due at once. */
  readonly leading?: boolean
}

/** `debounce` and `batch` are shorthands of `window`. A flow uses at most one of the three. */
export interface WindowShorthands {
  /** Waits until the lane has been quiet for this long, but not longer than `max` (10 × `quiet` by default). */
  readonly debounce?: Duration | DebounceOptions
  /** Collects events for this long from the first one. */
  readonly batch?: Duration | BatchOptions
}

type CapOption = 'maxEvents' | 'maxBytes'
type DebounceOptions = Required<Pick<WindowOptions, 'quiet'>> &
  Pick<WindowOptions, 'max' | 'leading' | 'jitter' | CapOption>
type BatchOptions = Required<Pick<WindowOptions, 'every'>> & Pick<WindowOptions, CapOption>

/** `resolveWindow` returns the window for `debounce` or `batch`; undefined if the flow uses neither. */
export function resolveWindow(
  options: WindowShorthands & { window?: unknown },
  where: string,
): WindowOptions | undefined {
  const used = (['window', 'debounce', 'batch'] as const).filter((option) => options[option] !== undefined)
  if (used.length > 1)
    throw invalidOption(`${where} must have one of window, debounce and batch; got ${used.join(' and ')}.`)
  const { debounce, batch } = options
  if (debounce !== undefined) return expandShorthand(debounce, 'quiet', `${where}.debounce`)
  if (batch !== undefined) return expandShorthand(batch, 'every', `${where}.batch`)
  return undefined
}

/** A duration is the option itself. An object must have it, because without it there is no window. */
function expandShorthand(value: unknown, needed: 'quiet' | 'every', option: string): WindowOptions {
  if (typeof value === 'string' || typeof value === 'number') return { [needed]: value }
  if (typeof value === 'object' && value !== null) {
    if (needed in value) return value
    assertKnownOptions(value, WINDOW_OPTIONS, `${option}.`)
  }
  const example = needed === 'quiet' ? "{ quiet: '10s', max: '1m' }" : "{ every: '60s', maxEvents: 100 }"
  const got = JSON.stringify(value) ?? typeof value
  throw invalidOption(`${option} must be a duration or an object like ${example}; got ${got}.`)
}

interface Range {
  readonly from: Millis
  readonly to: Millis
}

/** A checked window. `numbers` returns its durations at a pressure from 0 to 1. */
export interface Window {
  readonly max: Millis
  numbers(level: number): WindowParameters
}

/** Checks the window when the app is built and rejects contradictions. */
export function createWindow(options: WindowOptions = {}, flow = 'window'): Window {
  const quiet = parseQuiet(options, flow)
  const max = parseMax(options, quiet, flow)
  if (quiet.to > max && options.every === undefined)
    throw invalidOption(`${flow}.max must be at least its quiet (${quiet.to} ms); got ${max} ms.`)
  return toWindow(options, quiet, max, flow)
}

/** Resolves the window of one event. It does not throw for a `max` below `quiet`; that `max` then counts as both. */
export function createEventWindow(options: WindowOptions = {}, flow = 'window'): Window {
  const quiet = parseQuiet(options, flow)
  const max = parseMax(options, quiet, flow)
  const held = options.every === undefined ? { from: Math.min(quiet.from, max), to: Math.min(quiet.to, max) } : quiet
  return toWindow(options, held, max, flow)
}

function toWindow(options: WindowOptions, quiet: Range, max: Millis, flow: string): Window {
  const maxEvents = assertAtLeast(1, options.maxEvents ?? DEFAULTS.maxEvents, `${flow}.maxEvents`)
  if (!Number.isInteger(maxEvents) && maxEvents < Infinity)
    throw invalidOption(`${flow}.maxEvents must be a whole number; got ${maxEvents}.`)
  const maxBytes = assertAtLeast(1, options.maxBytes ?? DEFAULTS.maxBytes, `${flow}.maxBytes`)
  const jitter = assertAtLeast(0, options.jitter ?? 0, `${flow}.jitter`)
  if (jitter > 1) throw invalidOption(`${flow}.jitter must be from 0 to 1; got ${jitter}.`)
  const leading = options.leading ?? false
  if (leading && options.quiet === undefined)
    throw invalidOption(`${flow}.leading has no effect without quiet. Remove it, or add quiet.`)
  const fixed = { max, maxEvents, maxBytes, jitter, leading }
  return {
    max,
    numbers: (level) => ({
      ...fixed,
      quiet: quiet.from === quiet.to ? quiet.from : computeAdaptiveQuiet(quiet, level),
    }),
  }
}

function parseQuiet(options: WindowOptions, flow: string): Range {
  if (typeof options !== 'object' || options === null)
    throw invalidOption(`${flow} must be an object like { quiet: '10s' }; got ${JSON.stringify(options)}.`)
  assertKnownOptions(options, WINDOW_OPTIONS, `${flow}.`)
  const { quiet, every } = options
  if (quiet !== undefined && every !== undefined) throw invalidOption(`${flow} must have quiet or every; got both.`)
  if (every !== undefined) return { from: Infinity, to: Infinity }
  if (quiet === undefined) return { from: 0, to: 0 }
  if (typeof quiet !== 'object') {
    const both = parseDuration(quiet, `${flow}.quiet`)
    return { from: both, to: both }
  }
  const from = parseDuration(quiet.from, `${flow}.quiet.from`)
  const to = parseDuration(quiet.to, `${flow}.quiet.to`)
  if (from > 0 && from <= to) return { from, to }
  throw invalidOption(
    `${flow}.quiet must have a from above 0, and a to that is at least as long; got from ${from} ms to ${to} ms.`,
  )
}

function parseMax({ every, max }: WindowOptions, quiet: Range, flow: string): Millis {
  if (every !== undefined && max !== undefined)
    throw invalidOption(`${flow} must not have both every and max, because every is its own max.`)
  if (every !== undefined) return parseDuration(every, `${flow}.every`)
  if (max !== undefined) return parseDuration(max, `${flow}.max`)
  if (quiet.to < Infinity) return quiet.to * DEFAULTS.maxQuietFactor
  throw invalidOption(`${flow}.quiet must be finite unless max is set. Set max or every to bound the wait.`)
}

function assertAtLeast(least: number, value: number, option: string): number {
  if (value >= least) return value
  throw invalidOption(`${option} must be at least ${least}; got ${value}.`)
}
