// `FlowOptions` are the options of a flow. `createFlow` checks them when the app is built and rejects unknown, contradictory and ignored
// options with a message that names the option and the fix.
import { NEVER, type Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { isPace, withPace, type Pace } from '../limit/pace.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { Flow, WhileRunning } from '../model/flow.ts'
import { assertKnownOptions, assertWholeNumber, invalidOption } from '../validate/options.ts'
import type { WindowParameters } from '../model/place.ts'
import { backoff, delayWithRetryAfter, type RetryOptions } from './backoff.ts'
import { assertSynchronous, toSelection, type EventOf, type EventSelector } from './selection.ts'
import type { ContentFilter } from './where.ts'
import { resolveWindow, createWindow, createEventWindow, type WindowOptions, type WindowShorthands } from './window.ts'

type OptionalKey = string | null | undefined

/** The window of one event. `maxEvents`, `maxBytes` and an adaptive `quiet` belong to the flow and not to one event. */
type EventWindow = Omit<WindowOptions, 'quiet' | 'maxEvents' | 'maxBytes'> & { readonly quiet?: Duration }

export interface FlowOptions<Run, On extends EventSelector = EventSelector> extends WindowShorthands {
  /** Typed events, globs over `source/type`, or a predicate. */
  readonly on: On
  /** A filter over the content of the events that `on` matches. */
  readonly where?: ContentFilter
  /** Returns the key of the lane; without a key the flow skips the event. Default: each event has a lane of its own. */
  readonly key?: (event: EventOf<On>) => OptionalKey | readonly OptionalKey[]
  /** The general form of a window, or a function that returns the window of one event. */
  readonly window?: WindowOptions | ((event: EventOf<On>) => EventWindow)
  /** Which waiting events a run takes; the others end as superseded. */
  readonly take?: 'all' | 'first' | 'last'
  /** Tenants take turns, however many lanes each has ready. */
  readonly share?: 'tenant'
  /** The maximum number of concurrent runs over all processes; with `share`, per tenant. */
  readonly concurrency?: number
  /** The limit of which each run takes a slot before its handler is called, or a function that returns it. */
  readonly pace?: Pace<Run>
  /** The number of waiting events at which the lane is due at once, and the most that a run takes. Default: 1,000. */
  readonly maxEvents?: number
  /** The same in bytes. Default: 4 MB. */
  readonly maxBytes?: number
  /**
   * Whether events that arrive during a run wait for their window, only wait for its end, or cancel it. A function decides per event: the
   * arriving event whether it cancels, and the last event of the run whether those behind it wait for their window.
   */
  readonly whileRunning?: WhileRunning | ((event: EventOf<On>) => WhileRunning)
  readonly retry?: RetryOptions
  /** Whether a lane continues after a dead letter or waits until it is resolved. */
  readonly onDead?: 'continue' | 'block'
  readonly timeout?: Duration
  /** How long the records of finished runs are kept. */
  readonly keep?: Duration
  /** When a tenant has more open windows than this, its oldest one is due at once. */
  readonly maxLanesPerTenant?: number
  readonly run: (run: Run) => unknown
}

const OPTIONS: ReadonlySet<string> = new Set<keyof FlowOptions<never>>([
  'on',
  'where',
  'key',
  'window',
  'debounce',
  'batch',
  'maxEvents',
  'maxBytes',
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

export function createFlow<Run, On extends EventSelector = EventSelector>(
  name: string,
  typed: FlowOptions<Run, On>,
): Flow {
  // The engine calls the functions of the flow only with events that `on` selects.
  const given = typed as FlowOptions<Run>
  const where = `flow(${JSON.stringify(name)})`
  const refuse: Refuse = (what) => {
    throw invalidOption(`${where}: ${what}`)
  }
  if (typeof name !== 'string' || !/^[\w][\w./:-]{0,127}$/u.test(name)) {
    refuse('the name must have 1 to 128 letters, digits and . / : _ -, and start with a letter, a digit or _.')
  }
  if (typeof given !== 'object' || given === null) {
    refuse("the options must be an object, e.g. { on: '**', run: () => {} }.")
  }
  assertKnownOptions(given, OPTIONS, `${where}.`)
  const resolved = resolveWindow(given, where)
  const options: FlowOptions<Run> = resolved === undefined ? given : { ...given, window: resolved }
  if (typeof options.run !== 'function') refuse('run must be a function, the handler of the flow.')
  if (options.key !== undefined && typeof options.key !== 'function') {
    refuse(`key must be a function of the event; got ${JSON.stringify(options.key)}.`)
  }
  if (options.pace !== undefined && !isPace(options.pace)) {
    refuse('pace must be a limit from app.limit() or limit.per(), or a function of the run that returns one.')
  }
  if (options.key === undefined) assertNoKeyOptions(given, options, refuse)
  if (options.maxLanesPerTenant !== undefined && options.window === undefined) {
    refuse('maxLanesPerTenant bounds open windows, and the flow has none. Remove it, or add debounce, batch or window.')
  }
  const { take = 'all', onDead = 'continue' } = options
  const { timeout = DEFAULTS.timeout, keep = DEFAULTS.keepCompleted } = options
  const choices = {
    take: assertOneOf(take, ['all', 'first', 'last'], 'take', refuse),
    whileRunning: parseWhileRunning(options.whileRunning, refuse),
    onDead: assertOneOf(onDead, ['continue', 'block'], 'onDead', refuse),
    share: options.share === undefined ? undefined : assertOneOf(options.share, ['tenant'], 'share', refuse),
  }
  const runFor = parseDuration(timeout, `${where}.timeout`)
  if (!(runFor > 0)) refuse(`timeout must be above 0; got ${runFor}.`)
  const { key } = options
  const retries = backoff(options.retry, `${where}.retry`)
  return {
    name,
    ...toSelection(name, options),
    ...toWindows(where, options, writtenAs(given)),
    ...choices,
    selectKeys: key === undefined ? undefined : (event) => assertSynchronous(key(event), 'key'),
    concurrency: parseCount(options.concurrency, `${where}: concurrency`),
    timeout: runFor,
    retryDelay: ({ failures, random: chance, requestedDelay = 0 }) => {
      const delay = retries.delay(failures, chance)
      return delay === undefined ? undefined : delayWithRetryAfter(delay, requestedDelay)
    },
    maxAttempts: retries.tries,
    retention: parseDuration(keep, `${where}.keep`),
    maxLanesPerTenant: parseCount(options.maxLanesPerTenant, `${where}: maxLanesPerTenant`),
    isInternal: false,
    isDelivery: false,
    run: withPace(options.run, options.pace),
  }
}

type Refuse = (message: string) => never

const WHILE_RUNNING = ['window', 'requeue', 'cancel'] as const
const CAPS = ['maxEvents', 'maxBytes'] as const

function rejectValue(message: string): never {
  throw new TypeError(message)
}

function parseWhileRunning(value: FlowOptions<never>['whileRunning'] = 'window', refuse: Refuse): Flow['whileRunning'] {
  if (typeof value !== 'function') {
    const fixed = assertOneOf(value, WHILE_RUNNING, 'whileRunning', refuse)
    return () => fixed
  }
  return (event) =>
    assertOneOf(assertSynchronous(value(event), 'whileRunning'), WHILE_RUNNING, 'whileRunning', rejectValue)
}

/** Without `key`, no event joins another one's lane, so options about joining events are rejected. */
function assertNoKeyOptions(given: FlowOptions<never>, options: FlowOptions<never>, refuse: Refuse): void {
  const shorthand = (['debounce', 'batch'] as const).find((option) => given[option] !== undefined)
  if (shorthand !== undefined)
    refuse(
      `${shorthand} must have a key, because without one each event has a lane of its own. ` +
        "Add key, e.g. (event) => event.subject, or () => 'all' for one lane.",
    )
  const ignored = (['take', 'whileRunning', 'onDead', ...CAPS] as const).find((option) => options[option] !== undefined)
  if (ignored !== undefined)
    refuse(`${ignored} has no effect without key, because each event has a lane of its own. Remove it, or add key.`)
  if (typeof options.window !== 'object' || options.window === null) return
  for (const option of ['maxEvents', 'maxBytes', 'leading'] as const) {
    if (options.window[option] !== undefined) {
      refuse(
        `window.${option} has no effect without key, because each event has a lane of its own. Remove it, or add key.`,
      )
    }
  }
}

function assertOneOf<T extends string>(value: T, known: readonly T[], option: string, refuse: Refuse): T {
  return known.includes(value)
    ? value
    : refuse(`${option} must be ${known.map((one) => `'${one}'`).join(' or ')}; got ${JSON.stringify(value)}.`)
}

function parseCount(value: number | undefined, option: string): number {
  return value === undefined ? Infinity : assertWholeNumber(value, 1, option)
}

type FlowWindows = Pick<Flow, 'computeWindow' | 'maxEvents' | 'maxBytes' | 'rememberFor' | 'adaptiveBaseQuiet'>

/** `writtenAs` returns the option in which the user wrote the window. */
function writtenAs({ debounce, batch }: WindowShorthands): 'debounce' | 'batch' | 'window' {
  if (debounce !== undefined) return 'debounce'
  return batch === undefined ? 'window' : 'batch'
}

function toWindows(name: string, flowOptions: WindowedOptions, written = 'window'): FlowWindows {
  const { window, key } = flowOptions
  const option = `${name}.${written}`
  const caps = pickCaps(flowOptions)
  if (typeof window === 'function') {
    const of = (event: FlowEvent, level: number): WindowParameters => {
      const given = assertSynchronous(window(event), 'window')
      assertNoFlowWindowOptions(given, option, key !== undefined)
      return createEventWindow({ ...given, ...caps }, option).numbers(level)
    }
    const { maxEvents, maxBytes } = createWindow(caps, name).numbers(0)
    return { computeWindow: of, maxEvents, maxBytes, rememberFor: longestLeadingKeep(of), adaptiveBaseQuiet: undefined }
  }
  if (window !== undefined && (typeof window !== 'object' || window === null))
    throw invalidOption(`${option} must be an object like { quiet: '10s' }; got ${JSON.stringify(window)}.`)
  const twice = CAPS.find((cap) => caps[cap] !== undefined && window?.[cap] !== undefined)
  if (twice !== undefined) throw invalidOption(`${name} must have ${twice} once; got it in the window as well.`)
  const options = { ...window, ...caps }
  const checked = createWindow(options, option)
  const numbers = checked.numbers(0)
  if (options.jitter !== undefined && options.quiet === undefined) {
    throw invalidOption(`${option}.jitter has no effect without quiet; remove it.`)
  }
  const adaptive = typeof options.quiet === 'object'
  return {
    computeWindow: (_event, level) => checked.numbers(level),
    maxEvents: numbers.maxEvents,
    maxBytes: numbers.maxBytes,
    rememberFor: () => leadingKeep(numbers),
    adaptiveBaseQuiet: adaptive ? numbers.quiet : undefined,
  }
}

type WindowedOptions = Pick<FlowOptions<never>, 'window' | 'key' | (typeof CAPS)[number]>

function pickCaps({ maxEvents, maxBytes }: WindowedOptions): Pick<WindowOptions, (typeof CAPS)[number]> {
  return { ...(maxEvents !== undefined && { maxEvents }), ...(maxBytes !== undefined && { maxBytes }) }
}

/** `assertNoFlowWindowOptions` rejects options that hold for the whole flow and not for one event. */
function assertNoFlowWindowOptions(options: WindowOptions | undefined, option: string, hasKey: boolean): void {
  const refuse = (name: string, why: string): never => {
    throw invalidOption(`${option} must not return ${name}: ${why}. Omit it, or use an object as window.`)
  }
  if (typeof options?.quiet === 'object') refuse('a range as quiet', 'the window of one event does not adapt')
  for (const name of CAPS) {
    if (options?.[name] !== undefined)
      refuse(name, `what a run takes is the same for all events; set ${name} on the flow`)
  }
  if (options?.leading === true && !hasKey) refuse('leading', 'it has no effect without key')
  if (options?.jitter !== undefined && options.quiet === undefined) refuse('jitter', 'it has no effect without quiet')
}

/** The user's function has returned a window for these events before. */
function longestLeadingKeep(of: Flow['computeWindow']): Flow['rememberFor'] {
  return (events) => {
    try {
      return Math.max(0, ...events.map((event) => leadingKeep(of(event, 0))))
    } catch {
      return 0
    }
  }
}

function leadingKeep(numbers: WindowParameters): Millis {
  return numbers.leading ? Math.min(numbers.quiet, NEVER) : 0
}
