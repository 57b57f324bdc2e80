// The slots of all limits of an app, as its store gives them: asked for together, given back together.
import type { Clock, Millis } from '../clock.ts'
import type { LimitNumbers } from '../model/limit.ts'
import type { Store } from '../store/contract/index.ts'
import { Batch } from './batch.ts'
import { invalid, titleOf } from './options.ts'

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
}

interface Return {
  readonly name: string
  readonly ticket: string
}

type Answer = Slot | TooFar | Refused

export class Slots {
  readonly #clock: Clock
  readonly #asked: Batch<SlotRequest, Answer>
  readonly #returned: Batch<Return, void>

  constructor({ store, clock }: SlotsParts) {
    this.#clock = clock
    this.#asked = new Batch(store, (opened, requests) => this.#reserve(opened, requests))
    this.#returned = new Batch(store, giveBack)
  }

  async reserve(request: SlotRequest): Promise<Slot | TooFar> {
    const answer = await this.#asked.ask(request)
    // Costs are checked before; only a store that was told other numbers can still refuse.
    if ('limit' in answer) throw invalid(`${titleOf(answer.limit)} can never grant a call of this cost.`)
    return answer
  }

  /** Never fails: a slot that cannot be given back goes by unused, which harms nobody. */
  async release(name: string, ticket: string): Promise<void> {
    await this.#returned.ask({ name, ticket }).catch(() => undefined)
  }

  /** Beyond it the call could fall into the next window (M1). */
  isFresh(slot: Slot): boolean {
    return this.#clock.monotonic() - slot.sent <= slot.freshFor - ROUNDING
  }

  async #reserve(store: Store, requests: readonly SlotRequest[]): Promise<readonly Answer[]> {
    const sent = this.#clock.monotonic()
    const { results } = await store.reserve({ requests })
    return results.map((result) => {
      if (result.kind === 'refused') return result
      return result.kind === 'far' ? { away: result.wait } : { wait: result.wait, freshFor: result.freshFor, sent }
    })
  }
}

/** The newest first: the store takes a slot back only while no later one is given (M7). */
async function giveBack(store: Store, returns: readonly Return[]): Promise<readonly void[]> {
  const acts = returns
    .toReversed()
    .map(({ name, ticket }) => store.regulate({ name, act: { kind: 'release', ticket } }))
  await Promise.allSettled(acts)
  return []
}
