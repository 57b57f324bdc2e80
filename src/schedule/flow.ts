// A flow as its author declares it. Checked when the app is built: contradictions, unknown options and options that would
// be ignored are refused in one message that names the option and the fix.
import { NEVER, type Millis } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { SluiceError } from '../errors.ts'
import { isPace, paced, type Pace } from '../limit/pace.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Flow } from '../model/flow.ts'
import { onlyKnown } from '../model/options.ts'
import type { WindowNumbers } from '../model/place.ts'
import { backoff, patience, type RetryOptions } from './backoff.ts'
import { matcher } from '../model/globs.ts'
import { window, windowOf, type WindowOptions } from './window.ts'

type Key = string | null | undefined

/** The window of one event. How much a run takes, and what adapts, is the same for all events of a flow. */
type WindowOfOne = Omit<WindowOptions, 'quiet' | 'maxEvents' | 'maxBytes'> & { readonly quiet?: Duration }

export interface FlowOptions<Run> {
  /** Globs over `source/type`, or a predicate. */
  readonly on: string | readonly string[] | ((event: FlowEvent) => boolean)
  /** One lane for each key. No key found: the event is skipped. Without this option every event is a lane of its own. */
  readonly key?: (event: FlowEvent) => Key | readonly Key[]
  readonly window?: WindowOptions | ((event: FlowEvent) => WindowOfOne)
  /** What a run takes of what waits; the rest ends as superseded. */
  readonly take?: 'all' | 'first' | 'last'
  /** Tenants take turns, however many lanes each has ready. */
  readonly share?: 'tenant'
  /** Runs at once over all processes; with `share`, of each tenant. */
  readonly concurrency?: number
  /** A limit that each run takes a slot of before its handler is called; or which one, for this run. */
  readonly pace?: Pace<Run>
  /** What events wait for that come during a run: their window, only its end, or do they cancel it. */
  readonly whileRunning?: 'window' | 'requeue' | 'cancel'
  readonly retry?: RetryOptions
  /** Whether a lane goes on after a dead letter, or waits for it. */
  readonly onDead?: 'continue' | 'block'
  readonly timeout?: Duration
  /** How long the records of finished runs are kept. */
  readonly keep?: Duration
  /** A tenant's oldest window is due at once when it has more lanes waiting. */
  readonly maxLanesPerTenant?: number
  readonly run: (run: Run) => unknown
}

const OPTIONS: ReadonlySet<string> = new Set<keyof FlowOptions<never>>([
  'on',
  'key',
  'window',
  'take',
  'share',
  'concurrency',
  'pace',
  'whileRunning',
  'retry',
  'onDead',
  'timeout',
  'keep',
  'maxLanesPerTenant',
  'run',
])

export function flow<Run>(name: string, options: FlowOptions<Run>): Flow {
  const refuse = (what: string): never => {
    throw new SluiceError('CONFIG_INVALID', `flow(${JSON.stringify(name)}): ${what}`)
  }
  if (typeof name !== 'string' || !/^[\w][\w./:-]{0,127}$/u.test(name)) {
    refuse('a name has 1 to 128 letters, digits and . / : _ -, and begins with a letter or digit.')
  }
  if (typeof options !== 'object' || options === null) {
    refuse("the options are missing; { on: '**', run: () => {} } will do.")
  }
  onlyKnown(options, OPTIONS, `flow(${JSON.stringify(name)}).`)
  if (typeof options.run !== 'function') refuse('run is missing; it is the function to call.')
  if (options.key !== undefined && typeof options.key !== 'function') {
    refuse(`key is ${JSON.stringify(options.key)}; it is a function of the event.`)
  }
  if (options.pace !== undefined && !isPace(options.pace)) {
    refuse('pace is no limit; it is what app.limit() or limit.per() gives, or a function of the run that does.')
  }
  if (options.key === undefined) refuseWithoutKey(options, refuse)
  if (options.maxLanesPerTenant !== undefined && options.window === undefined) {
    refuse('maxLanesPerTenant bounds open windows, and there is no window; remove one or add the other.')
  }
  const { take = 'all', whileRunning = 'window', onDead = 'continue' } = options
  const { timeout = DEFAULTS.timeout, keep = DEFAULTS.completedFor } = options
  const choices = {
    take: oneOf(take, ['all', 'first', 'last'], 'take', refuse),
    whileRunning: oneOf(whileRunning, ['window', 'requeue', 'cancel'], 'whileRunning', refuse),
    onDead: oneOf(onDead, ['continue', 'block'], 'onDead', refuse),
    share: options.share === undefined ? undefined : oneOf(options.share, ['tenant'], 'share', refuse),
  }
  const { key } = options
  const retries = backoff(options.retry, `${name}.retry`)
  return {
    name,
    ...selection(name, options),
    ...windows(name, options),
    ...choices,
    keysOf: key === undefined ? undefined : (event) => atOnce(key(event), 'key'),
    concurrency: count(options.concurrency, 'concurrency', refuse),
    timeout: above0(millis(timeout, `${name}.timeout`), 'timeout', refuse),
    delay: ({ failures, chance, asked = 0 }) => {
      const delay = retries.delay(failures, chance)
      return delay === undefined ? undefined : patience(delay, asked)
    },
    tries: retries.tries,
    retention: millis(keep, `${name}.keep`),
    maxLanesPerTenant: count(options.maxLanesPerTenant, 'maxLanesPerTenant', refuse),
    internal: false,
    run: paced(options.run, options.pace),
  }
}

type Refuse = (what: string) => never

/** Nothing joins an event that is a lane of its own, so that nothing can be said about those that do. */
function refuseWithoutKey(options: FlowOptions<never>, refuse: Refuse): void {
  const ignored = (['take', 'whileRunning', 'onDead'] as const).find((option) => options[option] !== undefined)
  if (ignored !== undefined) refuse(`${ignored} means nothing without key: each event is a lane of its own.`)
  if (typeof options.window !== 'object' || options.window === null) return
  for (const option of ['maxEvents', 'maxBytes', 'leading'] as const) {
    if (options.window[option] !== undefined) {
      refuse(`window.${option} means nothing without key: each event is a lane of its own.`)
    }
  }
}

/** Nobody waits for an answer that is yet to come (L2a): it is none, and its failure is nobody's. */
function atOnce<T>(answer: T, option: 'on' | 'key' | 'window'): T {
  if (typeof answer !== 'object' || answer === null) return answer
  const late = (Array.isArray(answer) ? (answer as readonly unknown[]) : [answer]).filter(isPromise)
  if (late.length === 0) return answer
  for (const one of late) Promise.resolve(one).catch(() => {})
  throw new TypeError(`${option} gave a promise; it must be synchronous, and looks nothing up.`)
}

function isPromise(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function oneOf<T extends string>(value: T, known: readonly T[], option: string, refuse: Refuse): T {
  return known.includes(value)
    ? value
    : refuse(`${option} is ${JSON.stringify(value)}; it is ${known.map((one) => `'${one}'`).join(' or ')}.`)
}

function above0(value: Millis, option: string, refuse: Refuse): Millis {
  return value > 0 ? value : refuse(`${option} is ${value}; it must be above 0.`)
}

function count(value: number | undefined, option: string, refuse: Refuse): number {
  if (value === undefined) return Infinity
  return Number.isInteger(value) && value >= 1 ? value : refuse(`${option} is ${value}; it is a whole number from 1.`)
}

function selection<Run>(name: string, { on }: FlowOptions<Run>): Pick<Flow, 'wants' | 'globs'> {
  if (typeof on === 'function') return { wants: (event) => atOnce(on(event), 'on'), globs: undefined }
  const globs = typeof on === 'string' ? [on] : on
  if (!Array.isArray(globs)) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `flow(${JSON.stringify(name)}): on is a glob, a list of globs or a function.`,
    )
  }
  return { wants: matcher(globs, `${name}.on`), globs }
}

type Windows = Pick<Flow, 'windowOf' | 'maxEvents' | 'maxBytes' | 'keepFor' | 'adaptiveFrom'>

function windows(name: string, flowOptions: Pick<FlowOptions<never>, 'window' | 'key'>): Windows {
  const { maxEvents, maxBytes } = DEFAULTS
  const { window: options } = flowOptions
  if (typeof options === 'function') {
    const of = (event: FlowEvent, level: number): WindowNumbers => {
      const given = atOnce(options(event), 'window')
      refuseOfOne(given, `${name}.window`, flowOptions.key !== undefined)
      return windowOf(given, `${name}.window`).numbers(level)
    }
    return { windowOf: of, maxEvents, maxBytes, keepFor: longestKeep(of), adaptiveFrom: undefined }
  }
  const checked = window(options, `${name}.window`)
  const numbers = checked.numbers(0)
  if (options?.jitter !== undefined && options.quiet === undefined) {
    throw new SluiceError('CONFIG_INVALID', `${name}.window.jitter spreads quiet, and there is none; remove it.`)
  }
  const adaptive = typeof options?.quiet === 'object'
  return {
    windowOf: (_event, level) => checked.numbers(level),
    maxEvents: numbers.maxEvents,
    maxBytes: numbers.maxBytes,
    keepFor: () => keepOf(numbers),
    adaptiveFrom: adaptive ? numbers.quiet : undefined,
  }
}

/** What cannot be said of one event alone: how much a run takes, and what adapts, is the same for all of a flow. */
function refuseOfOne(given: WindowOptions | undefined, option: string, hasKey: boolean): void {
  const refuse = (name: string, why: string): never => {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${option} gave ${name}: ${why}; leave it out, or give an object as window.`,
    )
  }
  if (typeof given?.quiet === 'object') refuse('a range as quiet', 'the window of one event does not adapt')
  for (const name of ['maxEvents', 'maxBytes'] as const) {
    if (given?.[name] !== undefined) refuse(name, 'what a run takes is the same for all events of a flow')
  }
  if (given?.leading === true && !hasKey) refuse('leading', 'it means nothing without key')
  if (given?.jitter !== undefined && given.quiet === undefined) refuse('jitter', 'it spreads quiet, and there is none')
}

/** The function is the user's, and has answered for these events before. */
function longestKeep(of: Flow['windowOf']): Flow['keepFor'] {
  return (events) => {
    try {
      return Math.max(0, ...events.map((event) => keepOf(of(event, 0))))
    } catch {
      return 0
    }
  }
}

function keepOf(numbers: WindowNumbers): Millis {
  return numbers.leading ? Math.min(numbers.quiet, NEVER) : 0
}
