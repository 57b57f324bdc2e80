// What the process that is killed publishes, and the lines in which it says what happened: shared with those who watch it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Chance, seedOf } from '../sqlite/kill-load.ts'

export const LEASE = 300
/** Of processes side by side, which are stopped for longer. */
export const LEASE_OF_MANY = 1_000
export const HEARTBEAT = 100

/** By type of event, the flows that want it. */
export const FLOWS_OF = {
  note: ['gather'],
  ping: ['single'],
  order: ['relay', 'single'],
  parcel: ['parcels'],
  fix: ['shaky'],
  task: ['steps'],
  turn: ['strict'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type Topic = keyof typeof FLOWS_OF
const TOPICS: readonly Topic[] = ['note', 'note', 'note', 'ping', 'order', 'order', 'fix', 'fix', 'task', 'turn']
const KEYS = 5
/** So many steps a task takes, each but the last ending with `again`. */
export const STEPS = 3
/** One run at a time, whatever its key. */
export const ONE_SLOT: readonly string[] = ['strict']

export interface Told {
  /** What the event is known by outside of the engine; its dedupe id, too. */
  readonly label: string
  readonly key: string
}

export interface Input {
  readonly type: Topic
  readonly dedupeId: string
  readonly data: Told
}

/** All of it follows from the label, so that it can be sent again to the last byte. */
export function inputOf(label: string, topic?: Topic): Input {
  const chance = new Chance(seedOf(`event ${label}`))
  const type = topic ?? TOPICS[chance.below(TOPICS.length)] ?? 'ping'
  return { type, dedupeId: label, data: { label, key: `k${chance.below(KEYS)}` } }
}

/** Some cannot succeed. */
export function isDoomed(label: string): boolean {
  return new Chance(seedOf(`doom ${label}`)).happens(0.02)
}

/** A few take so long that they are at work at most deaths: such a run becomes a suspect, and at last a dead letter. */
export function isSlow(label: string): boolean {
  return new Chance(seedOf(`pace ${label}`)).happens(0.005)
}

/** What a run publishes, however often it is tried. */
export function parcelsOf(flow: string, run: string, step: number): readonly string[] {
  if (flow === 'steps') return [`${run}/${step}`]
  if (flow !== 'relay') return []
  return new Chance(seedOf(`parcels ${run}`)).happens(0.5) ? [`${run}/0`, `${run}/1`] : [`${run}/0`]
}

/** How a handler ended. */
export type How = 'done' | 'again' | 'failed' | 'permanent' | 'aborted'

/** One line each. Times are of the machine's monotonic clock, which all processes share. */
export type Line =
  | { readonly kind: 'opened'; readonly at: number }
  | { readonly kind: 'sending'; readonly labels: readonly string[] }
  | { readonly kind: 'acked'; readonly answers: readonly (readonly [label: string, answer: string])[] }
  /** Known from an earlier life: `acked` there, or without an answer. */
  | { readonly kind: 'resent'; readonly label: string; readonly was: 'acked' | 'unknown'; readonly answer: string }
  | {
      readonly kind: 'entered'
      readonly at: number
      readonly flow: string
      readonly key: string
      readonly run: string
      readonly attempt: number
      readonly step: number
      readonly events: readonly string[]
    }
  | { readonly kind: 'left'; readonly at: number; readonly run: string; readonly how: How }
  /** What the engine told of a run after its settlement was answered. */
  | { readonly kind: 'told'; readonly at: number; readonly name: string; readonly run: string }
  /** The process stood still, for want of a core or because it was stopped. */
  | { readonly kind: 'stalled'; readonly from: number; readonly at: number }
  /** What the store was asked and answered: the lanes and tokens it settled, and those that it gave. */
  | {
      readonly kind: 'turned'
      readonly sent: number
      readonly at: number
      readonly settled: readonly (readonly [lane: string, token: number, answer: string])[]
      readonly claimed: readonly (readonly [lane: string, token: number])[]
    }
  /** A settlement of a lease that ended long before it was sent. */
  | {
      readonly kind: 'stale'
      readonly at: number
      readonly lane: string
      readonly token: number
      readonly answer: string
    }
  | { readonly kind: 'drained' }
  | { readonly kind: 'stuck'; readonly lanes: readonly string[] }

export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export function ledgerFile(folder: string, life: number): string {
  return join(folder, `life-${life}.ndjson`)
}

/** What a life has written; the last line may be cut off, then it was not written. */
export function linesOf(file: string): readonly Line[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((text) => parsed(text))
}

function parsed(text: string): readonly Line[] {
  try {
    return [JSON.parse(text) as Line]
  } catch {
    return []
  }
}
