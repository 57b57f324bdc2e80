// `Intake` is the buffer before the store. Events that arrive in the same turn of the event loop share a commit; when
// the buffer is full, it rejects events at once (R2, R4). A store may gather further: SQLite also puts settlements into
// the same disk sync. The receiver gathers requests before this, so that each step runs while its code is cached.
import { AsyncLocalStorage } from 'node:async_hooks'
import { SluiceError, type ErrorCode } from '../errors.ts'
import type { RoutableEvent } from '../model/new-event.ts'
import type { PublishResult } from '../model/event.ts'

export interface IntakeDependencies {
  readonly store: (events: readonly RoutableEvent[]) => Promise<readonly PublishResult[]>
  /** The bound on events that wait for the store or are being stored. */
  readonly maxEvents: number
  readonly maxBytes: number
  /** Whether the store works long enough on a call that this process can prepare the next one meanwhile. */
  readonly overlaps?: () => boolean
  /** The most events of one request that are stored at a time: more would delay other requests. The default is
      10,000. */
  readonly maxSlice?: number
}

interface Arrival {
  readonly events: readonly RoutableEvent[]
  readonly bytes: number
  /** How many of its bytes count toward the bound while it is here. */
  readonly counted: number
  readonly resolve: (published: readonly PublishResult[]) => void
  readonly reject: (error: unknown) => void
}

/** The bound for one call: in a long commit, the first events wait for the last. */
const EVENTS_AT_ONCE = 2_000
/** The bound for one call in bytes, below what a store accepts at once. */
const BYTES_AT_ONCE = 16 * 2 ** 20
const SLICE = 10_000
/** Two, so that one commit fills while another is written. */
const MAX_CALLS = 2
/** For fewer events than this, a further commit costs the server more than it gains by starting early. */
const MIN_EVENTS_TO_HALVE = 100
/** Faults that one arrival may cause for the others of its call. */
const SINGLE_EVENT_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'STORE_FAILED',
  'STORE_FULL',
  'ENCRYPTION_KEY_UNKNOWN',
])
/** After this many failures in a row of separate calls, no single arrival is the cause. */
const MAX_FAILURES = 3

export class Intake {
  readonly #deps: IntakeDependencies
  /** A call stores the events of many requests, so it runs in the async context, and the trace, of none of them. */
  readonly #runDetached = AsyncLocalStorage.snapshot()
  #waiting: Arrival[] = []
  #events = 0
  #bytes = 0
  #hasLarge = false
  #underWay = 0
  #isWoken = false
  #drained: PromiseWithResolvers<void> | undefined

  constructor(parts: IntakeDependencies) {
    this.#deps = parts
  }

  /** `take` resolves when the events would survive a crash. It returns undefined if there is no room. */
  take(events: readonly RoutableEvent[]): Promise<readonly PublishResult[]> | undefined {
    const bytes = countBytes(events)
    const { maxEvents, maxBytes, maxSlice: slice = SLICE } = this.#deps
    const isAlone = this.#events === 0
    const next = Math.min(events.length, slice)
    if (!isAlone && this.#events + next > maxEvents) return undefined
    if (bytes > maxBytes) return this.#hasLarge ? undefined : this.#storeLarge(events, slice)
    if (!isAlone && this.#bytes + bytes > maxBytes) return undefined
    return events.length <= slice ? this.#enqueue(events, bytes, bytes) : this.#inSlices(events, bytes, slice)
  }

  /** `#storeLarge` takes a request larger than the buffer, which would never fit beside others. Only one at a time
      is taken, and its bytes do not count. */
  async #storeLarge(events: readonly RoutableEvent[], slice: number): Promise<readonly PublishResult[]> {
    this.#hasLarge = true
    try {
      return await this.#inSlices(events, 0, slice)
    } finally {
      this.#hasLarge = false
    }
  }

  /** `#inSlices` stores one slice after the other, so that other requests get through. A request that has begun is
      not rejected for lack of room. */
  async #inSlices(events: readonly RoutableEvent[], counted: number, slice: number): Promise<readonly PublishResult[]> {
    const published: PublishResult[] = []
    this.#bytes += counted
    try {
      for (let from = 0; from < events.length; from += slice) {
        const part = events.slice(from, from + slice)
        for (const one of await this.#enqueue(part, countBytes(part), 0)) published.push(one)
      }
    } finally {
      this.#bytes -= counted
    }
    return published
  }

  #enqueue(events: readonly RoutableEvent[], bytes: number, counted: number): Promise<readonly PublishResult[]> {
    this.#events += events.length
    this.#bytes += counted
    const stored = new Promise<readonly PublishResult[]>((resolve, reject) => {
      this.#waiting.push({ events, bytes, counted, resolve, reject })
    })
    this.#wake()
    return stored
  }

  /** `#wake` sends after everything that arrives in this turn of the event loop. */
  #wake(): void {
    if (this.#isWoken || this.#underWay >= MAX_CALLS || this.#waiting.length === 0) return
    this.#isWoken = true
    queueMicrotask(() => {
      this.#isWoken = false
      void this.#runDetached(() => this.#send())
    })
  }

  async #send(): Promise<void> {
    const arrivals = this.#takeBatch()
    this.#underWay++
    this.#wake()
    await this.#store(arrivals)
    for (const { events, counted } of arrivals) {
      this.#events -= events.length
      this.#bytes -= counted
    }
    this.#underWay--
    this.#wake()
    if (!this.#isIdle) return
    this.#drained?.resolve()
    this.#drained = undefined
  }

  async #store(arrivals: readonly Arrival[]): Promise<void> {
    try {
      const published = await this.#deps.store(arrivals.flatMap(({ events }) => events))
      let from = 0
      for (const { events, resolve } of arrivals) resolve(published.slice(from, (from += events.length)))
    } catch (error) {
      const isOfOne = arrivals.length > 1 && error instanceof SluiceError && SINGLE_EVENT_CODES.has(error.code)
      if (isOfOne) await this.#storeSeparately(arrivals)
      else for (const { reject } of arrivals) reject(error)
    }
  }

  /** `#storeSeparately` stores one arrival after the other, until it is clear that no single one is the cause.
      Events that the failed call did store are recognized by their id. */
  async #storeSeparately(arrivals: readonly Arrival[]): Promise<void> {
    let failures = 0
    for (const [at, { events, resolve, reject }] of arrivals.entries()) {
      try {
        resolve(await this.#deps.store(events))
        failures = 0
      } catch (error) {
        reject(error)
        if (++failures < MAX_FAILURES) continue
        for (const other of arrivals.slice(at + 1)) other.reject(error)
        return
      }
    }
  }

  get #isIdle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0
  }

  /** `drained` resolves when nothing waits or is being stored. */
  drained(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return (this.#drained ??= Promise.withResolvers<void>()).promise
  }

  /**
   * `#takeBatch` takes what fits into one call. If the store has nothing to do, it may get only half of the events, and works on them
   * while this process prepares the other half. Otherwise callers that wait for each other make the two take turns.
   */
  #takeBatch(): readonly Arrival[] {
    const waiting = this.#waiting.reduce((sum, arrival) => sum + arrival.events.length, 0)
    const isHalved = waiting >= MIN_EVENTS_TO_HALVE && this.#underWay === 0 && this.#deps.overlaps?.() === true
    const most = isHalved ? waiting / 2 : EVENTS_AT_ONCE
    let [events, bytes] = [0, 0]
    const end = this.#waiting.findIndex((arrival) => {
      events += arrival.events.length
      bytes += arrival.bytes
      return events > most || bytes > BYTES_AT_ONCE
    })
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : Math.max(1, end))
  }
}

function countBytes(events: readonly RoutableEvent[]): number {
  return events.reduce((sum, { body, request, attributes, subject, tenant }) => {
    return sum + body.length + request.length + attributes.length + subject.length + tenant.length
  }, 0)
}
