// What writers send and workers publish in a race on a few hot keys, and what each of them reports. The judge uses it too. All
// random choices follow from a seed.
import { createEventToStore } from '../../conformance/builders.ts'
import type { EventToStore } from '../../../src/store/contract/index.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'

export const PROCESSES = 3
export const WRITERS_EACH = 2
const KEYS = 40
/** Writers that send the same events; the two of a pair are in two processes. */
const PAIRS: readonly (readonly [number, number])[] = [
  [0, 2],
  [1, 4],
  [3, 5],
]
const MOST_AT_ONCE = 4
const MOST_LANES = 3
const SHARED = 0.25

export interface RaceCall {
  /** The address of the store. */
  readonly address: string
  readonly process: number
  readonly batches: number
  readonly seed: number
}

/** A run from its claim to the time before its settlement is sent, on the clock that all processes share. */
export interface Held {
  readonly key: string
  readonly run: string
  readonly from: number
  readonly to: number
  readonly labels: readonly string[]
  readonly end: 'done' | 'retry' | 'snoozed' | 'dead'
  /** A retried dead letter, which runs when somebody retries it. */
  readonly isDeadLetter: boolean
  readonly published: readonly string[]
}

export interface Written {
  readonly kind: 'written'
  /** In the order of the calls. */
  readonly answers: readonly (readonly [label: string, answer: string])[]
}

export interface Worked {
  readonly kind: 'worked'
  readonly held: readonly Held[]
  readonly wrong: readonly string[]
  /** Calls that were sent a second time while the first was running. */
  readonly repeated: number
}

/** Keys follow from the label. Their order is not the lock order. */
export function keysOf(label: string): readonly string[] {
  const chance = new Chance(seedOf(`keys of ${label}`))
  const keys = Array.from({ length: 1 + chance.below(MOST_LANES) }, () => `k${chance.below(KEYS)}`)
  return [...new Set(keys)]
}

export function eventOf(label: string, now: number): EventToStore {
  return createEventToStore(label, { keys: keysOf(label), dedupe: label, subject: label }, now)
}

/** What a writer sends in one call. */
export function batchOf({ seed }: Pick<RaceCall, 'seed'>, writer: number, n: number): readonly string[] {
  const chance = new Chance(seedOf(`${seed} batch ${writer} ${n}`))
  const own = Array.from({ length: 1 + chance.below(MOST_AT_ONCE) }, (_, at) => `w${writer} ${n * MOST_AT_ONCE + at}`)
  const pair = PAIRS.findIndex((two) => two.includes(writer))
  const isShared = new Chance(seedOf(`${seed} shared ${pair} ${n}`)).happens(SHARED)
  return isShared ? own.toSpliced(chance.below(own.length + 1), 0, `both${pair} ${n}`) : own
}

/** Whether a handler published the event; the handlers of such events publish no further ones. */
export function isPublished(label: string): boolean {
  return label.startsWith('p')
}
