// The buffer before the store: arrivals of one moment share one commit, and past its bound nobody waits (R2, R4).
import { AsyncLocalStorage } from 'node:async_hooks'
import { SluiceError, type ErrorCode } from '../errors.ts'
import type { UnroutedEvent } from './new-event.ts'
import type { Published } from './publisher.ts'

export interface IntakeParts {
  readonly store: (events: readonly UnroutedEvent[]) => Promise<readonly Published[]>
  /** Of all that waits for the store or is on its way to it. */
  readonly maxEvents: number
  readonly maxBytes: number
  /** Of one request, so many at a time: with more, others would wait for it alone. 10,000 unless said. */
  readonly slice?: number
}

interface Arrival {
  readonly events: readonly UnroutedEvent[]
  readonly bytes: number
  /** How many of its bytes count against the bound, as long as it is here. */
  readonly counted: number
  readonly resolve: (published: readonly Published[]) => void
  readonly reject: (error: unknown) => void
}

/** Of one call: a commit that takes long keeps the first ones waiting for the last ones. */
const EVENTS_AT_ONCE = 2_000
/** Nor may it become larger than what a store takes at once, however many come together. */
const BYTES_AT_ONCE = 16 * 2 ** 20
const SLICE = 10_000
/** The next commit is filled while one is written. */
const CALLS_AT_ONCE = 2
/** What one of them may be the reason of, and the others not. */
const OF_ONE: ReadonlySet<string> = new Set<ErrorCode>(['STORE_FAILED', 'STORE_FULL', 'SEAL_UNKNOWN'])
/** After so many failures apart it is none of them. */
const FAILURES_IN_A_ROW = 3

export class Intake {
  readonly #parts: IntakeParts
  /** What is sent is sent for many: in the name, and with the trace, of none of them. */
  readonly #forNobody = AsyncLocalStorage.snapshot()
  #waiting: Arrival[] = []
  #events = 0
  #bytes = 0
  #hasLarge = false
  #underWay = 0
  #isWoken = false
  #drained: PromiseWithResolvers<void> | undefined

  constructor(parts: IntakeParts) {
    this.#parts = parts
  }

  /** Resolves when the events would survive a crash. Undefined: there is no room. */
  take(events: readonly UnroutedEvent[]): Promise<readonly Published[]> | undefined {
    const bytes = bytesOf(events)
    const { maxEvents, maxBytes, slice = SLICE } = this.#parts
    const isAlone = this.#events === 0
    const next = Math.min(events.length, slice)
    if (!isAlone && this.#events + next > maxEvents) return undefined
    if (bytes > maxBytes) return this.#hasLarge ? undefined : this.#large(events, slice)
    if (!isAlone && this.#bytes + bytes > maxBytes) return undefined
    return events.length <= slice ? this.#queued(events, bytes, bytes) : this.#inSlices(events, bytes, slice)
  }

  /** One that never fits beside others would be turned away as long as there are any. One at a time, it does not count. */
  async #large(events: readonly UnroutedEvent[], slice: number): Promise<readonly Published[]> {
    this.#hasLarge = true
    try {
      return await this.#inSlices(events, 0, slice)
    } finally {
      this.#hasLarge = false
    }
  }

  /** One after the other, so that others come in between. What has begun is not turned away for lack of room. */
  async #inSlices(events: readonly UnroutedEvent[], counted: number, slice: number): Promise<readonly Published[]> {
    const published: Published[] = []
    this.#bytes += counted
    try {
      for (let from = 0; from < events.length; from += slice) {
        const part = events.slice(from, from + slice)
        for (const one of await this.#queued(part, bytesOf(part), 0)) published.push(one)
      }
    } finally {
      this.#bytes -= counted
    }
    return published
  }

  #queued(events: readonly UnroutedEvent[], bytes: number, counted: number): Promise<readonly Published[]> {
    this.#events += events.length
    this.#bytes += counted
    const stored = new Promise<readonly Published[]>((resolve, reject) => {
      this.#waiting.push({ events, bytes, counted, resolve, reject })
    })
    this.#wake()
    return stored
  }

  /** After all that arrives in this turn of the event loop. */
  #wake(): void {
    if (this.#isWoken || this.#underWay >= CALLS_AT_ONCE || this.#waiting.length === 0) return
    this.#isWoken = true
    queueMicrotask(() => {
      this.#isWoken = false
      void this.#forNobody(() => this.#send())
    })
  }

  async #send(): Promise<void> {
    const arrivals = this.#next()
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
      const published = await this.#parts.store(arrivals.flatMap(({ events }) => events))
      let from = 0
      for (const { events, resolve } of arrivals) resolve(published.slice(from, (from += events.length)))
    } catch (error) {
      const isOfOne = arrivals.length > 1 && error instanceof SluiceError && OF_ONE.has(error.code)
      if (isOfOne) await this.#apart(arrivals)
      else for (const { reject } of arrivals) reject(error)
    }
  }

  /** One after the other, until it is clear that it is none of them. Whatever was stored all the same is known by its id. */
  async #apart(arrivals: readonly Arrival[]): Promise<void> {
    let failures = 0
    for (const [at, { events, resolve, reject }] of arrivals.entries()) {
      try {
        resolve(await this.#parts.store(events))
        failures = 0
      } catch (error) {
        reject(error)
        if (++failures < FAILURES_IN_A_ROW) continue
        for (const other of arrivals.slice(at + 1)) other.reject(error)
        return
      }
    }
  }

  get #isIdle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0
  }

  /** When nothing waits or is under way. */
  drained(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return (this.#drained ??= Promise.withResolvers<void>()).promise
  }

  #next(): readonly Arrival[] {
    let [events, bytes] = [0, 0]
    const end = this.#waiting.findIndex((arrival) => {
      events += arrival.events.length
      bytes += arrival.bytes
      return events > EVENTS_AT_ONCE || bytes > BYTES_AT_ONCE
    })
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : Math.max(1, end))
  }
}

function bytesOf(events: readonly UnroutedEvent[]): number {
  return events.reduce((sum, { body, request, attributes, subject, tenant }) => {
    return sum + body.length + request.length + attributes.length + subject.length + tenant.length
  }, 0)
}
