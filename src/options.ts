// What an app is built with, checked: one message names the option that is wrong and the fix.
import { randomBytes } from 'node:crypto'
import type { Clock, Millis } from './clock.ts'
import { DEFAULTS } from './config.ts'
import { SluiceError } from './errors.ts'
import type { DeliverySettings } from './delivery-settings.ts'
import { millis, type Duration } from './model/duration.ts'
import { isObject } from './model/arguments.ts'
import { onlyKnown } from './model/options.ts'
import type { LogOptions } from './observe/log.ts'
import type { TraceApi } from './observe/traces.ts'
import { mustBeLogOptions } from './observe/log-options.ts'
import type { Store } from './store/contract/index.ts'

export interface SluiceOptions {
  /** `memory:`, `sqlite:<file>`, or a store that was opened elsewhere. */
  readonly store: string | Store
  readonly clock?: Clock
  /** A run that is not renewed for so long may be given to another process. */
  readonly lease?: Duration
  /** How often leases are renewed: at least three times within a lease. */
  readonly heartbeat?: Duration
  /** Runs of this process, all flows together. */
  readonly runsAtOnce?: number
  /** How often to look for work should no wake-up come. */
  readonly poll?: Duration
  /** How long `stop` lets runs go on. */
  readonly grace?: Duration
  /** How long an event is known by its dedupe id. */
  readonly dedupe?: Duration
  readonly keep?: {
    /** Events whose work is done, by source; `''` for all others. */
    readonly events?: Duration | Readonly<Record<string, Duration>>
    readonly deadLetters?: Duration
    /** The oldest finished events go first when there is more. */
    readonly bytes?: number
  }
  /** A flow whose first lane is later than this raises an alert. */
  readonly lateAfter?: Duration
  /** False: no log. */
  readonly log?: LogOptions | false
  /** Seals secrets and payloads at rest: 32 random bytes as base64. Of several the first seals, all open. SLUICE_MASTER_KEY unless said. */
  readonly key?: string | readonly string[]
  /** Requests of one address, in each process: 1,000 a minute unless said. */
  readonly addressRate?: { readonly rate: number; readonly per: Duration }
  /** Whether /metrics answers everybody; otherwise it is as guarded as the API. */
  readonly openMetrics?: boolean
  /** The module `@opentelemetry/api`, for spans of requests and runs. */
  readonly traces?: TraceApi
  /** How batches go out to endpoints. */
  readonly delivery?: DeliverySettings
  /** What the name of this process begins with, where it is shown. */
  readonly process?: string
}

const OPTIONS: ReadonlySet<string> = new Set<keyof SluiceOptions>([
  'store',
  'clock',
  'lease',
  'heartbeat',
  'runsAtOnce',
  'poll',
  'grace',
  'dedupe',
  'keep',
  'lateAfter',
  'log',
  'key',
  'addressRate',
  'openMetrics',
  'traces',
  'delivery',
  'process',
])

export interface Settings {
  readonly lease: Millis
  readonly heartbeat: Millis
  readonly runsAtOnce: number
  readonly poll: Millis
  readonly newsApart: Millis
  readonly grace: Millis
  readonly afterAbort: Millis
  readonly againFor: Millis
  readonly dedupeFor: Millis
  readonly lateAfter: Millis
  readonly keepEvents: Readonly<Record<string, Millis>>
  readonly keepDead: Millis
  readonly keepBytes: number
  readonly addressRate: { readonly rate: number; readonly per: Millis }
  readonly openMetrics: boolean
  readonly process: string
}

const KEEP_OPTIONS: ReadonlySet<string> = new Set<keyof NonNullable<SluiceOptions['keep']>>([
  'events',
  'deadLetters',
  'bytes',
])

const RATE_OPTIONS: ReadonlySet<string> = new Set<keyof NonNullable<SluiceOptions['addressRate']>>(['rate', 'per'])

export function settingsOf(options: SluiceOptions): Settings {
  if (typeof options !== 'object' || options === null)
    throw invalid("the options are missing; { store: 'memory:' } will do.")
  if (typeof options.store !== 'string' && !isStore(options.store)) {
    throw invalid('store is neither an address nor a store; sqlite:<file> is the usual one.')
  }
  onlyKnown(options, OPTIONS, 'new Sluice: ')
  mustBeLogOptions(options.log, 'new Sluice: ')
  if (options.clock !== undefined && !isClock(options.clock))
    throw invalid('clock is none; leave it out, or give one with now, monotonic and after.')
  const time = (option: 'lease' | 'heartbeat' | 'poll' | 'grace' | 'dedupe' | 'lateAfter'): Millis =>
    millis(options[option] ?? DEFAULTS[option], `Sluice.${option}`)
  const lease = time('lease')
  const heartbeat = time('heartbeat')
  if (!(heartbeat > 0)) throw invalid('heartbeat is 0; leases are renewed after some time, say 10s.')
  if (lease < 3 * heartbeat) {
    throw invalid(
      `lease (${lease} ms) is shorter than three heartbeats (${heartbeat} ms each); lengthen it or beat faster.`,
    )
  }
  if (lease === Infinity) throw invalid('lease is endless; a run whose process has died would never come back.')
  if (!(time('dedupe') > 0))
    throw invalid('dedupe is 0; an event must be known for some time, say 7d: what is repeated would run twice.')
  const poll = time('poll')
  if (!(poll > 0)) throw invalid('poll is 0; it is how often to look when no wake-up comes, say 1s.')
  const { runsAtOnce = DEFAULTS.runsAtOnce } = options
  if (!(Number.isInteger(runsAtOnce) && runsAtOnce > 0)) {
    throw invalid(`runsAtOnce is ${runsAtOnce}; it is a whole number from 1.`)
  }
  return {
    lease,
    heartbeat,
    runsAtOnce,
    poll,
    newsApart: DEFAULTS.newsApart,
    grace: time('grace'),
    afterAbort: millis(DEFAULTS.afterAbort, 'afterAbort'),
    againFor: millis(DEFAULTS.againFor, 'againFor'),
    dedupeFor: time('dedupe'),
    lateAfter: time('lateAfter'),
    ...kept(options.keep),
    addressRate: addressRateOf(options.addressRate),
    openMetrics: openMetricsOf(options.openMetrics ?? false),
    // Each start is a process of its own, whatever it is called: it numbers its turns from one.
    process: [options.process, randomBytes(9).toString('base64url')].filter((part) => part !== undefined).join('-'),
  }
}

function kept(keep: SluiceOptions['keep'] = {}): Pick<Settings, 'keepEvents' | 'keepDead' | 'keepBytes'> {
  if (!isObject(keep)) throw invalid("keep is no object of options; { events: '30d' } is one.")
  onlyKnown(keep, KEEP_OPTIONS, 'new Sluice: keep.')
  const { events = DEFAULTS.completedFor, deadLetters = DEFAULTS.deadLettersFor, bytes = Infinity } = keep
  if (typeof events === 'object' && !isObject(events))
    throw invalid("keep.events is neither a duration nor an object of them by source; '30d' is one.")
  const bySource = typeof events === 'object' ? events : { '': events }
  const all = { '': DEFAULTS.completedFor, ...bySource }
  if (!(bytes > 0)) throw invalid(`keep.bytes is ${bytes}; it is a number of bytes above 0.`)
  return {
    keepEvents: Object.fromEntries(
      Object.entries(all).map(([source, age]) => [
        source,
        millis(age, `Sluice.keep.events[${JSON.stringify(source)}]`),
      ]),
    ),
    keepDead: millis(deadLetters, 'Sluice.keep.deadLetters'),
    keepBytes: Math.min(bytes, Number.MAX_SAFE_INTEGER),
  }
}

function addressRateOf(addressRate: SluiceOptions['addressRate'] = DEFAULTS.addressRate): Settings['addressRate'] {
  onlyKnown(addressRate, RATE_OPTIONS, 'new Sluice: addressRate.')
  const { rate, per } = addressRate
  const each = millis(per, 'Sluice.addressRate.per')
  if (!(rate > 0 && each > 0)) throw invalid('addressRate: rate and per are above 0; Infinity lets everybody in.')
  return { rate, per: each }
}

function openMetricsOf(openMetrics: unknown): boolean {
  if (typeof openMetrics === 'boolean') return openMetrics
  throw invalid('openMetrics is neither true nor false.')
}

function isClock(clock: unknown): boolean {
  if (typeof clock !== 'object' || clock === null) return false
  return ['now', 'monotonic', 'after'].every((name) => typeof Reflect.get(clock, name) === 'function')
}

function isStore(store: unknown): boolean {
  return typeof store === 'object' && store !== null && 'turn' in store
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `new Sluice: ${what}`)
}
