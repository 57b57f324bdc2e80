// What the killed process sends, and the lines that it logs. The checker uses the same definitions.
import { keylessLaneId, type LaneId } from '../../src/model/identity.ts'
import { createEventToStore, createPlacement } from '../conformance/builders.ts'
import type { EventToStore, Placement } from '../../src/store/contract/index.ts'

export const FLOW = 'flow'
export const LEASE = 200

/** An event and its lanes. */
export type Sent = readonly [id: string, lanes: readonly LaneId[]]

export interface Ended {
  readonly run: string
  readonly lane: LaneId
  readonly kind: 'done' | 'retry' | 'dead' | 'partial' | 'released'
  readonly events: readonly string[]
  /** Only for `partial`. */
  readonly retry: readonly string[]
  readonly dead: readonly string[]
  readonly publish: readonly Sent[]
}

export interface Claimed {
  readonly run: string
  readonly lane: LaneId
  readonly token: number
  readonly tries: number
  readonly lapses: number
  readonly events: readonly string[]
}

/** One line each. A call without a reply when the process dies is unknown: it may have happened or not. */
export type Line =
  | { readonly kind: 'appending'; readonly n: number; readonly events: readonly Sent[] }
  | { readonly kind: 'appended'; readonly n: number; readonly answers: readonly string[] }
  /** A known event was published again, under its own id or another one. */
  | { readonly kind: 'sent-again'; readonly of: string; readonly as: string; readonly answer: string }
  | { readonly kind: 'settling'; readonly n: number; readonly ends: readonly Ended[] }
  | { readonly kind: 'settled'; readonly n: number; readonly answers: readonly string[] }
  | { readonly kind: 'claimed'; readonly runs: readonly Claimed[]; readonly crashed: readonly string[] }
  | { readonly kind: 'wrong'; readonly what: string }

/** Random numbers from a seed: the same numbers each time. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(n: number): number {
    return Math.floor(this.next() * n)
  }

  happens(probability: number): boolean {
    return this.next() < probability
  }
}

/** The body follows from the id, so the checker knows it. One in a hundred is big. */
export function bodyOf(id: string): Uint8Array {
  const chance = new Chance(seedOf(id))
  const size = chance.happens(0.01) ? 5_000 + chance.below(55_000) : chance.below(300)
  return Buffer.alloc(size, `${id}\0é👍`)
}

export function seedOf(text: string): number {
  let seed = 0x811c9dc5
  for (let at = 0; at < text.length; at++) seed = Math.imul(seed ^ text.charCodeAt(at), 0x01000193)
  return seed >>> 0
}

const KEYS = 8

/** A lane of its own, a shared debounced lane, or both; this follows from the id too. */
export function eventOf(id: string, now: number): EventToStore {
  const chance = new Chance(seedOf(`places of ${id}`))
  const keyed = createPlacement({ flow: FLOW, key: `k${chance.below(KEYS)}`, quiet: chance.below(51) })
  const own: Placement = { ...createPlacement({ flow: FLOW, key: id }), lane: keylessLaneId(FLOW, id) }
  const kind = chance.next()
  const places = kind < 0.45 ? [own] : kind < 0.9 ? [keyed] : [own, keyed]
  return { ...createEventToStore(id, { id, body: bodyOf(id), request: `POST /in\n${id}` }, now), placements: places }
}

export function sent(event: EventToStore): Sent {
  return [event.id, event.placements.map((one) => one.lane)]
}
