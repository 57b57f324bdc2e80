// `SluiceOptions` are the options of an app. The checks reject a wrong option with a message that names it and the fix.
import { randomBytes } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { SluiceError } from '../errors.ts'
import type { DeliverySettings } from '../deliver/options.ts'
import type { FlowOptions } from '../flow/options.ts'
import type { EventOf, EventSelector } from '../flow/selection.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { Handler, Run } from '../run/run.ts'
import { assertNodeVersion } from '../validate/node-version.ts'
import { isObject, assertKnownOptions } from '../validate/options.ts'
import { isDev } from './dev-mode.ts'
import { assertLogOptions, type LogOptions } from '../observe/log/log.ts'
import type { TraceApi } from '../observe/trace/spans.ts'
import type { Store } from '../store/contract/index.ts'

/** `HandledFlowOptions` are the options of `app.flow`: their functions get the events that `on` selects. */
export type HandledFlowOptions<On extends EventSelector> = FlowOptions<Run<EventOf<On>>, On> & {
  readonly run: Handler<EventOf<On>>
}

export interface SluiceOptions {
  /** An address such as `memory:` or `sqlite:<file>`, or a store that the caller opened. */
  readonly store: string | Store
  readonly clock?: Clock
  /** A run that is not renewed for this long may go to another process. */
  readonly lease?: Duration
  /** How often leases are renewed; at most a third of the lease. */
  readonly heartbeat?: Duration
  /** The maximum number of concurrent runs of this process, over all flows. */
  readonly maxConcurrentRuns?: number
  /** How often to look for work if no wake-up arrives. */
  readonly poll?: Duration
  /** How long `stop` waits for runs before it aborts them. */
  readonly shutdownTimeout?: Duration
  /** How long a dedupe id is recognised. */
  readonly dedupe?: Duration
  readonly keep?: {
    /** How long finished events are kept, by source; `''` for all other sources. */
    readonly events?: Duration | Readonly<Record<string, Duration>>
    readonly deadLetters?: Duration
    /** The maximum size of the stored bodies and requests; beyond it, the oldest finished events are removed first. */
    readonly bytes?: number
  }
  /** A flow whose first lane is later than this raises an alert. */
  readonly lateAfter?: Duration
  /** The options of the log; false switches it off. */
  readonly log?: LogOptions | false
  /**
   * The key that encrypts secrets and payloads at rest: 32 random bytes as base64. With a list of keys, the first one encrypts and all of them
   * decrypt. Default: the variable SLUICE_ENCRYPTION_KEY.
   */
  readonly encryptionKey?: string | readonly string[] | undefined
  /** The maximum rate of requests from one address, per process (default 1,000 per minute). */
  readonly addressRate?: { readonly rate: number; readonly per: Duration }
  /** Whether /metrics needs no key. By default it needs one, like the API. */
  readonly openMetrics?: boolean
  readonly admin?: AdminOptions
  /** Whether the server shows the dashboard at /dashboard, and leads from / to it. The default is true. */
  readonly dashboard?: boolean
  /** The module `@opentelemetry/api`, for spans of requests and runs. */
  readonly traces?: TraceApi
  /** The options for posts to endpoints. */
  readonly delivery?: DeliverySettings
  /** The prefix of this process's name, as operators see it. */
  readonly process?: string
}

interface AdminOptions {
  /**
   * With `'loopback'`, the admin API accepts direct calls from the same machine without a key, as long as no key exists. By default
   * every call needs a key, unless `sluice dev` started the app.
   */
  readonly open?: 'loopback'
}

const OPTIONS: ReadonlySet<string> = new Set<keyof SluiceOptions>([
  'admin',
  'dashboard',
  'store',
  'clock',
  'lease',
  'heartbeat',
  'maxConcurrentRuns',
  'poll',
  'shutdownTimeout',
  'dedupe',
  'keep',
  'lateAfter',
  'log',
  'encryptionKey',
  'addressRate',
  'openMetrics',
  'traces',
  'delivery',
  'process',
])

export interface Settings {
  readonly lease: Millis
  readonly heartbeat: Millis
  readonly maxConcurrentRuns: number
  readonly poll: Millis
  readonly minWakeUpInterval: Millis
  readonly shutdownTimeout: Millis
  readonly abortTimeout: Millis
  readonly snoozeLimit: Millis
  readonly dedupeFor: Millis
  readonly lateAfter: Millis
  readonly keepEvents: Readonly<Record<string, Millis>>
  readonly keepDeadLetters: Millis
  readonly keepBytes: number
  readonly addressRate: { readonly rate: number; readonly per: Millis }
  readonly openMetrics: boolean
  /** Whether calls from the same machine need no key, as long as no key exists. */
  readonly isAdminOpen: boolean
  readonly servesDashboard: boolean
  readonly process: string
}

export function parseSettings(options: SluiceOptions): Settings {
  assertNodeVersion()
  if (typeof options !== 'object' || options === null)
    throw invalid("the options must be an object, e.g. { store: 'memory:' }.")
  if (typeof options.store !== 'string' && !isStore(options.store)) {
    throw invalid("store must be an address or a store, e.g. 'sqlite:<file>'.")
  }
  assertKnownOptions(options, OPTIONS, 'new Sluice: ')
  assertLogOptions(options.log, 'new Sluice: ')
  if (options.clock !== undefined && !isClock(options.clock))
    throw invalid('clock must have now(), monotonic() and after(). Omit it to use the system clock.')
  const time = (option: 'lease' | 'heartbeat' | 'poll' | 'shutdownTimeout' | 'dedupe' | 'lateAfter'): Millis =>
    parseDuration(options[option] ?? DEFAULTS[option], `Sluice.${option}`)
  const lease = time('lease')
  const heartbeat = time('heartbeat')
  if (!(heartbeat > 0)) throw invalid("heartbeat must be above 0, e.g. '10s'; got 0.")
  if (lease < 3 * heartbeat) {
    const rule = `lease must be at least three heartbeats (${heartbeat} ms each); got ${lease} ms`
    throw invalid(`${rule}. Raise lease or lower heartbeat.`)
  }
  if (lease === Infinity) throw invalid('lease must be finite, or the runs of a dead process would never be due again.')
  if (!(time('dedupe') > 0))
    throw invalid("dedupe must be above 0, e.g. '7d'; got 0. Otherwise a repeated event would run twice.")
  const poll = time('poll')
  if (!(poll > 0)) throw invalid("poll must be above 0, e.g. '1s'; got 0.")
  const { maxConcurrentRuns = DEFAULTS.maxConcurrentRuns, openMetrics = false, dashboard = true } = options
  if (!(Number.isInteger(maxConcurrentRuns) && maxConcurrentRuns > 0))
    throw invalid(`maxConcurrentRuns must be a whole number of at least 1; got ${maxConcurrentRuns}.`)
  if (typeof openMetrics !== 'boolean') throw invalid('openMetrics must be true or false.')
  if (typeof dashboard !== 'boolean') throw invalid('dashboard must be true or false.')
  return {
    lease,
    heartbeat,
    maxConcurrentRuns,
    poll,
    minWakeUpInterval: DEFAULTS.minWakeUpInterval,
    shutdownTimeout: time('shutdownTimeout'),
    abortTimeout: parseDuration(DEFAULTS.abortTimeout, 'abortTimeout'),
    snoozeLimit: parseDuration(DEFAULTS.snoozeLimit, 'snoozeLimit'),
    dedupeFor: time('dedupe'),
    lateAfter: time('lateAfter'),
    ...parseKeep(options.keep),
    addressRate: parseAddressRate(options.addressRate),
    openMetrics,
    isAdminOpen: isAdminOpen(options.admin),
    servesDashboard: dashboard,
    // Each start needs a unique process name, because it numbers its requests from one.
    process: [options.process, randomBytes(9).toString('base64url')].filter((part) => part !== undefined).join('-'),
  }
}

function parseKeep(keep: SluiceOptions['keep'] = {}): Pick<Settings, 'keepEvents' | 'keepDeadLetters' | 'keepBytes'> {
  if (!isObject(keep)) throw invalid("keep must be an object, e.g. { events: '30d' }.")
  assertKnownOptions(keep, ['events', 'deadLetters', 'bytes'], 'new Sluice: keep.')
  const { events = DEFAULTS.keepCompleted, deadLetters = DEFAULTS.keepDeadLetters, bytes = Infinity } = keep
  if (typeof events === 'object' && !isObject(events))
    throw invalid("keep.events must be a duration or an object of durations by source, e.g. '30d'.")
  const bySource = typeof events === 'object' ? events : { '': events }
  const all = { '': DEFAULTS.keepCompleted, ...bySource }
  if (!(bytes > 0)) throw invalid(`keep.bytes must be a number above 0; got ${bytes}.`)
  return {
    keepEvents: Object.fromEntries(Object.entries(all).map(parseKeepAge)),
    keepDeadLetters: parseDuration(deadLetters, 'Sluice.keep.deadLetters'),
    keepBytes: Math.min(bytes, Number.MAX_SAFE_INTEGER),
  }
}

function parseKeepAge([source, age]: readonly [string, Duration]): readonly [string, Millis] {
  return [source, parseDuration(age, `Sluice.keep.events[${JSON.stringify(source)}]`)]
}

function parseAddressRate(addressRate: SluiceOptions['addressRate'] = DEFAULTS.addressRate): Settings['addressRate'] {
  assertKnownOptions(addressRate, ['rate', 'per'], 'new Sluice: addressRate.')
  const { rate, per } = addressRate
  const each = parseDuration(per, 'Sluice.addressRate.per')
  if (!(rate > 0 && each > 0))
    throw invalid('addressRate: rate and per must be above 0. A rate of Infinity removes the bound.')
  return { rate, per: each }
}

function isAdminOpen(admin: SluiceOptions['admin'] = {}): boolean {
  assertKnownOptions(admin, ['open'], 'new Sluice: admin.')
  if (admin.open !== undefined && admin.open !== 'loopback') {
    const got = JSON.stringify(admin.open)
    throw invalid(`admin.open must be 'loopback'; got ${got}. Omit it to require a key from every caller.`)
  }
  return admin.open === 'loopback' || isDev()
}

function isClock(clock: unknown): boolean {
  if (typeof clock !== 'object' || clock === null) return false
  return ['now', 'monotonic', 'after'].every((name) => typeof Reflect.get(clock, name) === 'function')
}

function isStore(store: unknown): boolean {
  return typeof store === 'object' && store !== null && 'settleAndClaim' in store
}

function invalid(message: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `new Sluice: ${message}`)
}
