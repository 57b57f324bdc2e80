// The limit as an app uses it: a rate that all flows and processes share, around any call (M1 to M7).
import { NEVER, type Clock } from '../clock.ts'
import { millis, type Duration } from '../model/duration.ts'
import { tooCostly } from '../model/limit.ts'
import { onlyKnown } from '../model/options.ts'
import type { AnyListener } from '../observe/events.ts'
import type { Store } from '../store/contract/index.ts'
import { Caller } from './caller.ts'
import { HandOver } from './hand-over.ts'
import { limitedFetch } from './limited-fetch.ts'
import { invalid, limitSettings, titleOf, whole, type LimitOptions, type LimitSettings } from './options.ts'
import { observeLimit, pauseLimit, resumeLimit, type RegulateParts, type Seen } from './regulate.ts'
import { askedFor } from './retry-after.ts'
import { Slots, type SlotRequest } from './slots.ts'
import { SlotsMissed, takeSlot } from './take-slot.ts'
import { ToldPauses } from './told-pauses.ts'

export type { LimitOptions } from './options.ts'

interface CallOptions {
  /** How many calls it counts as, in each of its limits; 1 unless said. */
  cost?: number
  /** Further limits of the same app that this call is under; all are reserved in one step. */
  with?: readonly Limit[]
  /** Ends the wait for a slot, and is handed to the call. */
  signal?: AbortSignal
}

export interface Limit {
  readonly name: string
  /** As declared. */
  readonly numbers: Pick<LimitSettings, 'rate' | 'per' | 'burst'>
  /** Makes the call as soon as it has a slot. Inside a run, a slot beyond `maxWait` puts the run off instead. */
  run<T>(call: (signal: AbortSignal | undefined) => T | Promise<T>, options?: CallOptions): Promise<T>
  /** A drop-in fetch: each request is under this limit, and a refusal with Retry-After pauses it. */
  readonly fetch: typeof globalThis.fetch
  /**
   * For every process: for so long, or for as long as the response asks in Retry-After, whatever its status. One without
   * that header pauses nothing, unless it is a 429: then for a second.
   */
  pause(why: Response | Duration): Promise<void>
  /** Ends a pause, and the slowness after one. */
  resume(): Promise<void>
  /** Corrects the limit by what the other side has counted. */
  observe(seen: Seen): Promise<void>
  /** A limit with the same numbers for each key. */
  per(key: string): Limit
}

/** One object for all limits of an app: those that share it share their calls to the store. */
export interface LimitParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly emit: AnyListener
  readonly fetch: typeof globalThis.fetch
}

export function makeLimit(name: string, options: LimitOptions, parts: LimitParts): Limit {
  return new SharedLimit(name, limitSettings(name, options), parts)
}

export function isLimit(value: unknown): value is Limit {
  return value instanceof SharedLimit
}

/** When the app stops: nobody waits for a slot any more, and slots nobody will use are given back. */
export async function endLimits(parts: LimitParts): Promise<void> {
  const { slots, regulating } = sharedFor(parts)
  regulating.pauses.end()
  await slots.end()
}

interface Shared {
  readonly slots: Slots
  readonly handOver: HandOver
  readonly regulating: RegulateParts
}

const sharedOf = new WeakMap<LimitParts, Shared>()

function sharedFor(parts: LimitParts): Shared {
  const known = sharedOf.get(parts)
  if (known !== undefined) return known
  const { store, clock, emit } = parts
  const regulating = { store, clock, emit, pauses: new ToldPauses(parts) }
  const shared = { slots: new Slots(parts), handOver: new HandOver(regulating), regulating }
  sharedOf.set(parts, shared)
  return shared
}

const CALL_OPTIONS: ReadonlySet<string> = new Set(['cost', 'with', 'signal'] satisfies (keyof CallOptions)[])

const MOST_MISSED = 10

class SharedLimit implements Limit {
  readonly name: string
  readonly fetch: typeof globalThis.fetch
  readonly numbers: Limit['numbers']
  readonly #settings: LimitSettings
  readonly #parts: LimitParts
  readonly #shared: Shared

  constructor(name: string, settings: LimitSettings, parts: LimitParts) {
    this.name = name
    this.#settings = settings
    this.numbers = { rate: settings.rate, per: settings.per, burst: settings.burst }
    this.#parts = parts
    this.#shared = sharedFor(parts)
    this.fetch = limitedFetch(
      { name, retries: settings.retries, run: (call, options) => this.run(call, options) },
      { ...this.#shared.regulating, fetch: parts.fetch },
    )
  }

  async run<T>(call: (signal: AbortSignal | undefined) => T | Promise<T>, options: CallOptions = {}): Promise<T> {
    const limits = this.#limitsOf(options)
    const { slots, handOver } = this.#shared
    const name = listed(limits.map((limit) => limit.name))
    const caller = new Caller(name, options.signal)
    caller.check()
    const wish = { name, limits, maxWait: this.#settings.maxWait, caller }
    for (let missed = 0; missed < MOST_MISSED; missed++) {
      const slot = await takeSlot({ slots, clock: this.#parts.clock }, wish)
      caller.check()
      // The answer may have taken long, or this process stood still: then the slot goes by, and another is taken (M1).
      if (!slots.isFresh(slot)) continue
      const held = handOver.heldFor(limits)
      if (held === 0) {
        handOver.handed(limits)
        return call(caller.signal)
      }
      await slots.sleepers.sleep(held, caller.signal, []).over
      caller.check()
    }
    throw new SlotsMissed(name, MOST_MISSED)
  }

  async pause(why: Response | Duration): Promise<void> {
    if (typeof why !== 'object') {
      // Somebody's wish says nothing about the rate.
      const duration = Math.min(millis(why, `${titleOf(this.name)}.pause`), NEVER)
      return pauseLimit(this.#shared.regulating, this.name, duration, false)
    }
    const asked = askedFor(why, this.#parts.clock.now())
    if (asked !== undefined) await pauseLimit(this.#shared.regulating, this.name, asked, true)
  }

  async resume(): Promise<void> {
    await resumeLimit(this.#shared.regulating, this.name)
  }

  async observe(seen: Seen): Promise<void> {
    await observeLimit(this.#shared.regulating, { ...this.#numbers(1), title: titleOf(this.name) }, seen)
  }

  per(key: string): Limit {
    if (typeof key !== 'string' || key === '') {
      throw invalid(
        `${titleOf(this.name)}.per was given ${JSON.stringify(key) ?? 'undefined'}; a key is text, and not empty.`,
      )
    }
    return new SharedLimit(`${this.name}/${key}`, this.#settings, this.#parts)
  }

  #numbers(cost: number): SlotRequest['limits'][number] {
    const { rate, per, burst } = this.#settings
    return { name: this.name, rate, per, burst, cost }
  }

  #limitsOf(options: CallOptions): SlotRequest['limits'] {
    const title = `${titleOf(this.name)}.run`
    onlyKnown(options, CALL_OPTIONS, `${title}: `)
    const cost = whole(options.cost ?? 1, 1, `${title}: cost`)
    const limits = [this.#numbers(cost)]
    const others: unknown = options.with ?? []
    if (!Array.isArray(others))
      throw invalid(`${title}: with is ${kindOf(others)}, not a list of limits; put it in [ ].`)
    for (const other of others as readonly unknown[]) {
      if (!(other instanceof SharedLimit) || other.#parts !== this.#parts) {
        const what = other instanceof SharedLimit ? JSON.stringify(other.name) : kindOf(other)
        throw invalid(`${title}: with has ${what}, which is no limit of the same app.`)
      }
      limits.push(other.#numbers(cost))
    }
    this.#checkLimits(limits, title)
    return limits
  }

  #checkLimits(limits: SlotRequest['limits'], title: string): void {
    // The store looks for a moment that suits each entry by itself: twice the same would be given room for one.
    const names = limits.map((limit) => limit.name)
    const twice = names.find((name, n) => names.indexOf(name) !== n)
    if (twice !== undefined)
      throw invalid(`${title}: ${JSON.stringify(twice)} is there twice; say it once, with a cost.`)
    const costly = limits.find((limit) => tooCostly(limit))
    if (costly === undefined) return
    const [bound, most] = costly.burst > 0 ? ['burst', costly.burst] : ['rate', costly.rate]
    const fix = `make it cost less, or raise the ${bound} of ${titleOf(costly.name)}`
    throw invalid(`${title}: cost is ${costly.cost}, above the ${bound} of ${most}; ${fix}.`)
  }
}

/** `a`, `a and b`, `a, b and c`. */
function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
