// `Limit` is a rate that all flows and processes share; it wraps any call (M1 to M7).
import { NEVER, type Clock } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { isTooCostly } from '../model/limit.ts'
import { assertKnownOptions, assertWholeNumber, describeKind, invalidOption } from '../validate/options.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { Store } from '../store/contract/index.ts'
import { LimitCaller } from './caller.ts'
import type { LimitMeter } from './meter.ts'
import { StallGuard } from './stall-guard.ts'
import { limitedFetch } from './limited-fetch.ts'
import { parseLimitOptions, limitTitle, type LimitOptions, type LimitSettings } from './options.ts'
import {
  observeLimit,
  PauseEvents,
  pauseLimit,
  resumeLimit,
  type RegulateDependencies,
  type ObservedUsage,
} from './regulate.ts'
import { retryAfterDelay } from './retry-after.ts'
import { SlotReservations, type SlotRequest } from './reservations.ts'
import { SlotsMissedError, takeSlot } from './take-slot.ts'

export type { LimitOptions } from './options.ts'

interface CallOptions {
  /** How many calls this one counts as, in each of its limits (default 1). */
  cost?: number
  /** Further limits of the same app for this call. The store reserves slots of all of them in one step. */
  with?: readonly Limit[]
  /** Aborts the wait for a slot. The call receives it as well. */
  signal?: AbortSignal
}

export interface Limit {
  readonly name: string
  /** The declared rate. */
  readonly numbers: Pick<LimitSettings, 'rate' | 'per' | 'burst'>
  /** `run` makes the call as soon as it has a slot. Inside a run, a slot further away than `maxWait` defers the run instead. */
  run<T>(call: (signal: AbortSignal | undefined) => T | Promise<T>, options?: CallOptions): Promise<T>
  /** `fetch` is a drop-in replacement: each request is under this limit, and a rejection with Retry-After pauses the limit. */
  readonly fetch: typeof globalThis.fetch
  /**
   * `pause` pauses the limit in every process, for the duration or for the Retry-After of the response, of any status. A response
   * without that header pauses nothing, except a 429, which pauses the limit for a second.
   */
  pause(why: Response | Duration): Promise<void>
  /** `resume` ends a pause and the reduced rate after it. */
  resume(): Promise<void>
  /** `observe` corrects the limit with the usage that the API reports. */
  observe(usage: ObservedUsage): Promise<void>
  /** `per` returns a separate limit with the same numbers for each key. */
  per(key: string): Limit
  /**
   * `with` returns this limit, whose calls are also under the other limits. The store reserves slots of all of them in one step. A
   * rejected request pauses this limit, not the others.
   */
  with(...others: readonly Limit[]): Limit
}

/** `LimitDependencies` is one object for all limits of an app: limits with the same object share their calls to the store. */
export interface LimitDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly emit: AnyListener
  readonly fetch: typeof globalThis.fetch
  readonly meter?: LimitMeter
}

export function createLimit(name: string, options: LimitOptions, deps: LimitDependencies): Limit {
  return new SharedLimit(name, parseLimitOptions(name, options), deps)
}

export function isLimit(value: unknown): value is Limit {
  return value instanceof SharedLimit
}

/** `closeLimits` ends all waits when the app stops and returns the unused slots. */
export async function closeLimits(deps: LimitDependencies): Promise<void> {
  const { slots, regulating } = sharedStateFor(deps)
  regulating.pauses.stop()
  await slots.close()
}

interface SharedLimitState {
  readonly slots: SlotReservations
  readonly handOver: StallGuard
  readonly regulating: RegulateDependencies
}

const sharedStates = new WeakMap<LimitDependencies, SharedLimitState>()

function sharedStateFor(deps: LimitDependencies): SharedLimitState {
  const known = sharedStates.get(deps)
  if (known !== undefined) return known
  const { store, clock, emit, meter } = deps
  const regulating = { store, clock, emit, meter, pauses: new PauseEvents(deps) }
  const shared = { slots: new SlotReservations(deps), handOver: new StallGuard(regulating), regulating }
  sharedStates.set(deps, shared)
  return shared
}

const MAX_MISSED = 10

class SharedLimit implements Limit {
  readonly name: string
  readonly fetch: typeof globalThis.fetch
  readonly numbers: Limit['numbers']
  readonly #settings: LimitSettings
  readonly #deps: LimitDependencies
  readonly #shared: SharedLimitState
  /** Every call is under these limits as well. */
  readonly #others: readonly Limit[]

  constructor(name: string, settings: LimitSettings, deps: LimitDependencies, others: readonly Limit[] = []) {
    this.name = name
    this.#settings = settings
    this.numbers = { rate: settings.rate, per: settings.per, burst: settings.burst }
    this.#deps = deps
    this.#others = others
    this.#shared = sharedStateFor(deps)
    this.fetch = limitedFetch(
      { name, retries: settings.retries, run: (call, options) => this.run(call, options) },
      { ...this.#shared.regulating, fetch: deps.fetch },
    )
  }

  async run<T>(call: (signal: AbortSignal | undefined) => T | Promise<T>, options: CallOptions = {}): Promise<T> {
    const limits = this.#requestedLimits(options)
    const { slots, handOver } = this.#shared
    const name = joinNames(limits.map((limit) => limit.name))
    const caller = new LimitCaller(name, options.signal)
    caller.assertLive()
    const request = { name, limits, maxWait: this.#settings.maxWait, caller }
    for (let missed = 0; missed < MAX_MISSED; missed++) {
      const slot = await takeSlot({ slots, clock: this.#deps.clock }, request)
      caller.assertLive()
      // If the reply was slow or the event loop was blocked, the slot is no longer fresh, and the call takes another one (M1).
      if (!slots.isFresh(slot)) continue
      const late = handOver.settle(limits)
      if (late === undefined) {
        handOver.trackCall(limits)
        this.#deps.meter?.countCall(limits, caller.flow)
        return call(caller.signal)
      }
      await late
      caller.assertLive()
    }
    throw new SlotsMissedError(name, MAX_MISSED)
  }

  async pause(why: Response | Duration): Promise<void> {
    if (typeof why !== 'object') {
      // A pause by hand says nothing about the rate, so it does not slow the limit afterwards.
      const duration = Math.min(parseDuration(why, `${limitTitle(this.name)}.pause`), NEVER)
      return pauseLimit(this.#shared.regulating, { name: this.name, for: duration, cause: 'code' })
    }
    const asked = retryAfterDelay(why, this.#deps.clock.now())
    if (asked === undefined) return
    const { status, url } = why
    await pauseLimit(this.#shared.regulating, { name: this.name, for: asked, cause: 'response', status, url })
  }

  async resume(): Promise<void> {
    await resumeLimit(this.#shared.regulating, this.name)
  }

  async observe(usage: ObservedUsage): Promise<void> {
    await observeLimit(this.#shared.regulating, { ...this.#toRequestedLimit(1), title: limitTitle(this.name) }, usage)
  }

  per(key: string): Limit {
    if (typeof key !== 'string' || key === '') {
      throw invalidOption(
        `${limitTitle(this.name)}.per: the key must be a non-empty string; got ${JSON.stringify(key) ?? 'undefined'}.`,
      )
    }
    return new SharedLimit(`${this.name}/${key}`, this.#settings, this.#deps, this.#others)
  }

  with(...others: readonly Limit[]): Limit {
    const combined = new SharedLimit(this.name, this.#settings, this.#deps, [...this.#others, ...others])
    combined.#requestedLimits({}, `${limitTitle(this.name)}.with`)
    return combined
  }

  #toRequestedLimit(cost: number): SlotRequest['limits'][number] {
    const { rate, per, burst } = this.#settings
    return { name: this.name, rate, per, burst, cost }
  }

  #requestedLimits(options: CallOptions, title = `${limitTitle(this.name)}.run`): SlotRequest['limits'] {
    assertKnownOptions(options, ['cost', 'with', 'signal'], `${title}: `)
    const cost = assertWholeNumber(options.cost ?? 1, 1, `${title}: cost`)
    const limits = [this.#toRequestedLimit(cost)]
    const others: unknown = options.with ?? []
    if (!Array.isArray(others))
      throw invalidOption(`${title}: with must be a list of limits; got ${describeKind(others)}.`)
    for (const other of [...this.#others, ...(others as readonly unknown[])].flatMap(flattenLimit)) {
      if (!(other instanceof SharedLimit) || other.#deps !== this.#deps) {
        const what = other instanceof SharedLimit ? JSON.stringify(other.name) : describeKind(other)
        throw invalidOption(`${title}: with must contain limits of the same app; got ${what}.`)
      }
      limits.push(other.#toRequestedLimit(cost))
    }
    this.#assertLimits(limits, title)
    return limits
  }

  /** `flatten` returns the limit and those it is combined with. */
  flatten(): readonly unknown[] {
    return [this, ...this.#others]
  }

  #assertLimits(limits: SlotRequest['limits'], title: string): void {
    // The store finds a time for each entry by itself, so the same limit twice would get room for one call only.
    const names = limits.map((limit) => limit.name)
    const twice = names.find((name, n) => names.indexOf(name) !== n)
    if (twice !== undefined)
      throw invalidOption(
        `${title}: ${JSON.stringify(twice)} must occur only once. Use cost to count the call more than once.`,
      )
    const costly = limits.find((limit) => isTooCostly(limit))
    if (costly === undefined) return
    const [bound, most] = costly.burst > 0 ? ['burst', costly.burst] : ['rate', costly.rate]
    const fix = `Lower the cost, or raise the ${bound} of ${limitTitle(costly.name)}`
    throw invalidOption(`${title}: cost must be at most the ${bound} of ${most}; got ${costly.cost}. ${fix}.`)
  }
}

function flattenLimit(value: unknown): unknown {
  return value instanceof SharedLimit ? value.flatten() : value
}

/** `a`, `a and b`, `a, b and c`. */
function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
