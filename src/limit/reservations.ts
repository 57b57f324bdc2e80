// `SlotReservations` reserves and returns the slots of all limits of an app, in batched calls to the store.
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { LimitParameters } from '../model/limit.ts'
import type { Hint, Store } from '../store/contract/index.ts'
import { CallBatcher } from './call-batcher.ts'
import { invalidOption } from '../validate/options.ts'
import { limitTitle } from './options.ts'

/** The store counts whole milliseconds, so a slot may be almost one millisecond older than reported. */
const ROUNDING: Millis = 1

export interface SlotRequest {
  /** One ticket per call: for the same ticket, the store returns the same slot. */
  readonly ticket: string
  readonly limits: readonly (LimitParameters & { readonly name: string })[]
  /** The store reserves no slot that is further away. */
  readonly maxWait: Millis
}

export interface Slot {
  /** 0 means that the slot is used now; the call must be made while the slot is fresh. */
  readonly wait: Millis
  /** When the request was sent, on the monotonic clock. The store granted the slot at this time or later. */
  readonly sent: Millis
  readonly freshFor: Millis
}

interface SlotReservationsDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
}

interface RefusedReservation {
  readonly limit: string
}

/** `DistantSlot` means that the next slot is further away than `maxWait`, so no slot was reserved. */
interface DistantSlot {
  readonly away: Millis
  /** The delay until the next request, for a caller that loses nothing by asking again. */
  readonly again: Millis
}

interface SlotReturn {
  readonly name: string
  readonly ticket: string
}

type ReservationResult = Slot | DistantSlot | RefusedReservation

interface SleepHandle {
  /** Resolves when the wait is over, however it ended. */
  readonly done: Promise<void>
  readonly wake: () => void
}

interface Sleeper {
  readonly limits: readonly string[]
  readonly wake: () => void
}

/** `Sleepers` holds the calls that wait for the time of their slot. A changed limit and the end of the app wake them early. */
class Sleepers {
  readonly #clock: Clock
  readonly #sleeping = new Set<Sleeper>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `sleep` waits until the delay is over, the signal aborts, or any of the limits changes. */
  sleep(delay: Millis, signal: AbortSignal | undefined, limits: readonly string[]): SleepHandle {
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => {
      cancel()
      signal?.removeEventListener('abort', wake)
      this.#sleeping.delete(sleeper)
      resolve()
    }
    const sleeper = { limits, wake }
    const cancel = this.#clock.after(Math.max(0, delay), wake)
    signal?.addEventListener('abort', wake, { once: true })
    this.#sleeping.add(sleeper)
    return { done: promise, wake }
  }

  wakeLimit(limit: string): void {
    for (const { limits, wake } of this.#sleeping) if (limits.includes(limit)) wake()
  }

  wakeAll(): void {
    for (const { wake } of this.#sleeping) wake()
  }
}

export class SlotReservations {
  /** The calls that wait for the time of their slot. */
  readonly sleepers: Sleepers
  readonly #clock: Clock
  readonly #reservations: CallBatcher<SlotRequest, ReservationResult>
  readonly #returns: CallBatcher<SlotReturn, void>
  /** By limit: the number of expected hints that this process itself caused by returning slots. */
  readonly #ownHints = new Map<string, number>()
  readonly #pending = new Set<Promise<unknown>>()
  #unsubscribe: (() => void) | undefined
  #isClosed = false

  constructor({ store, clock }: SlotReservationsDependencies) {
    this.#clock = clock
    this.sleepers = new Sleepers(clock)
    this.#reservations = new CallBatcher(store, (opened, requests) => this.#reserve(opened, requests))
    this.#returns = new CallBatcher(store, (opened, returns) => this.#releaseAll(opened, returns))
  }

  async reserve(request: SlotRequest): Promise<Slot | DistantSlot> {
    this.assertOpen()
    const answer = await this.#reservations.call(request)
    // `run` checks the cost beforehand. The store rejects it only if another process declared other numbers.
    if ('limit' in answer) throw invalidOption(`${limitTitle(answer.limit)} can never grant a call of this cost.`)
    return answer
  }

  /** `release` never fails: a slot that cannot be returned expires unused, which is harmless. */
  async release(limits: SlotRequest['limits'], ticket: string): Promise<void> {
    const [first] = limits
    if (first !== undefined) await this.#returns.call({ name: first.name, ticket }).catch(() => undefined)
  }

  /** `isFresh` returns whether the call may still be made. A later call could fall into the next window (M1). */
  isFresh(slot: Slot): boolean {
    return this.#clock.monotonic() - slot.sent <= slot.freshFor - ROUNDING
  }

  assertOpen(): void {
    if (this.#isClosed) throw new SluiceError('APP_STOPPED', 'The app was stopped; the call was not made.')
  }

  /** `close` ends all waits and returns the reserved slots. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#unsubscribe?.()
    // The newest slots are in the pending replies. No older slot can be returned before them (M7).
    await this.#reservations.drained()
    this.sleepers.wakeAll()
    await Promise.allSettled(this.#pending)
  }

  /** `track` makes `close` wait for the call, which may have a slot to return. */
  async track<T>(taking: Promise<T>): Promise<T> {
    this.#pending.add(taking)
    return taking.finally(() => this.#pending.delete(taking))
  }

  async #reserve(store: Store, requests: readonly SlotRequest[]): Promise<readonly ReservationResult[]> {
    if (!this.#isClosed) this.#unsubscribe ??= store.listen((hint) => this.#onHint(hint))
    const sent = this.#clock.monotonic()
    const { results } = await store.reserve({ requests })
    return results.map((result) => {
      if (result.kind === 'refused') return result
      return result.kind === 'far'
        ? { away: result.wait, again: result.recheckAfter }
        : { wait: result.wait, freshFor: result.freshFor, sent }
    })
  }

  /** A pause or its end moves slots, so sleeping calls ask again at once. If the hint is lost, they ask when they wake up. */
  #onHint(hint: Hint): void {
    if (hint.kind !== 'limit') return
    const echoes = this.#ownHints.get(hint.name) ?? 0
    if (echoes === 0) this.sleepers.wakeLimit(hint.name)
    else this.#ownHints.set(hint.name, echoes - 1)
  }

  /** Returns the newest slot first: the store takes a slot back only if no later one is reserved (M7). */
  async #releaseAll(store: Store, returns: readonly SlotReturn[]): Promise<readonly void[]> {
    let left = returns.toReversed()
    // A later request may have an earlier slot. While some slots are accepted, others may follow.
    for (let before = Infinity; left.length > 0 && left.length < before;) {
      before = left.length
      const back = await this.#tryRelease(store, left)
      left = left.filter((_, n) => back[n] === false)
    }
    return []
  }

  /** Returns for each slot whether the store took it back; undefined if the call failed. */
  async #tryRelease(store: Store, returns: readonly SlotReturn[]): Promise<readonly (boolean | undefined)[]> {
    for (const { name } of returns) this.#ownHints.set(name, (this.#ownHints.get(name) ?? 0) + 1)
    const replies = await Promise.allSettled(
      returns.map(({ name, ticket }) => store.regulate({ name, act: { kind: 'release', ticket } })),
    )
    // Hints arrive before the replies or never.
    for (const { name } of returns) this.#ownHints.delete(name)
    return replies.map((reply) => (reply.status === 'fulfilled' ? reply.value.released : undefined))
  }
}
