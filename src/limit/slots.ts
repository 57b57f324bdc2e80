// The slots of all limits of an app, as its store gives them: asked for together, given back together.
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { LimitNumbers } from '../model/limit.ts'
import type { Hint, Store } from '../store/contract/index.ts'
import { Batch } from './batch.ts'
import { invalid, titleOf } from './options.ts'
import { Sleepers } from './sleepers.ts'

/** The store counts whole milliseconds, so that a slot may be almost one older than it says. */
const ROUNDING: Millis = 1

export interface SlotRequest {
  /** One for each call: the store answers the same ticket with the same slot. */
  readonly ticket: string
  readonly limits: readonly (LimitNumbers & { readonly name: string })[]
  /** A slot that is further away is not taken. */
  readonly maxWait: Millis
}

export interface Slot {
  /** 0: it is used, and is to be used while it is fresh. */
  readonly wait: Millis
  /** When this was asked, by the monotonic clock: the answer may be old when it comes, never younger than this. */
  readonly sent: Millis
  readonly freshFor: Millis
}

interface SlotsParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
}

interface Refused {
  readonly limit: string
}

/** The next slot is further away than the caller would wait: it has none. */
interface TooFar {
  readonly away: Millis
  /** When to ask again, if that costs nothing. */
  readonly again: Millis
}

interface Return {
  readonly name: string
  readonly ticket: string
}

type Answer = Slot | TooFar | Refused

export class Slots {
  /** Those whose slot is still to come. */
  readonly sleepers: Sleepers
  readonly #clock: Clock
  readonly #asked: Batch<SlotRequest, Answer>
  readonly #returned: Batch<Return, void>
  /** By limit: hints to come that say no more than that something was given back here. */
  readonly #echoes = new Map<string, number>()
  readonly #takings = new Set<Promise<unknown>>()
  #deaf: (() => void) | undefined
  #ended = false

  constructor({ store, clock }: SlotsParts) {
    this.#clock = clock
    this.sleepers = new Sleepers(clock)
    this.#asked = new Batch(store, (opened, requests) => this.#reserve(opened, requests))
    this.#returned = new Batch(store, (opened, returns) => this.#giveBack(opened, returns))
  }

  async reserve(request: SlotRequest): Promise<Slot | TooFar> {
    this.check()
    const answer = await this.#asked.ask(request)
    // Costs are checked before; only a store that was told other numbers can still refuse.
    if ('limit' in answer) throw invalid(`${titleOf(answer.limit)} can never grant a call of this cost.`)
    return answer
  }

  /** Never fails: a slot that cannot be given back goes by unused, which harms nobody. */
  async release(limits: SlotRequest['limits'], ticket: string): Promise<void> {
    const [first] = limits
    if (first !== undefined) await this.#returned.ask({ name: first.name, ticket }).catch(() => undefined)
  }

  /** Beyond it the call could fall into the next window (M1). */
  isFresh(slot: Slot): boolean {
    return this.#clock.monotonic() - slot.sent <= slot.freshFor - ROUNDING
  }

  /** Throws once the app has ended. */
  check(): void {
    if (this.#ended) throw new SluiceError('APP_STOPPED', 'The app was stopped: the call was not made.')
  }

  /** Nobody waits on, and what was reserved is given back. */
  async end(): Promise<void> {
    this.#ended = true
    this.#deaf?.()
    // The newest are those that are being given just now: until they are back no other can be given back.
    await this.#asked.allAnswered()
    this.sleepers.wakeAll()
    await Promise.allSettled(this.#takings)
  }

  /** The end waits for it: it may have something to give back. */
  async tracked<T>(taking: Promise<T>): Promise<T> {
    this.#takings.add(taking)
    return taking.finally(() => this.#takings.delete(taking))
  }

  async #reserve(store: Store, requests: readonly SlotRequest[]): Promise<readonly Answer[]> {
    if (!this.#ended) this.#deaf ??= store.listen((hint) => this.#hear(hint))
    const sent = this.#clock.monotonic()
    const { results } = await store.reserve({ requests })
    return results.map((result) => {
      if (result.kind === 'refused') return result
      return result.kind === 'far'
        ? { away: result.wait, again: result.again }
        : { wait: result.wait, freshFor: result.freshFor, sent }
    })
  }

  /** A pause or its end moves slots: who sleeps asks again at once. Should the hint be lost, it asks when it wakes. */
  #hear(hint: Hint): void {
    if (hint.kind !== 'limit') return
    const echoes = this.#echoes.get(hint.name) ?? 0
    if (echoes === 0) this.sleepers.news(hint.name)
    else this.#echoes.set(hint.name, echoes - 1)
  }

  /** The newest first: the store takes a slot back only while no later one is given (M7). */
  async #giveBack(store: Store, returns: readonly Return[]): Promise<readonly void[]> {
    let left = returns.toReversed()
    // What was asked for later may have been given earlier: as long as some come back, others may follow.
    for (let before = Infinity; left.length > 0 && left.length < before;) {
      before = left.length
      const back = await this.#tryGiveBack(store, left)
      left = left.filter((_, n) => back[n] === false)
    }
    return []
  }

  /** Of each: whether it came back; undefined if the store could not say. */
  async #tryGiveBack(store: Store, returns: readonly Return[]): Promise<readonly (boolean | undefined)[]> {
    for (const { name } of returns) this.#echoes.set(name, (this.#echoes.get(name) ?? 0) + 1)
    const replies = await Promise.allSettled(
      returns.map(({ name, ticket }) => store.regulate({ name, act: { kind: 'release', ticket } })),
    )
    // Hints come before the answers, or never.
    for (const { name } of returns) this.#echoes.delete(name)
    return replies.map((reply) => (reply.status === 'fulfilled' ? reply.value.released : undefined))
  }
}
