// What the killed process publishes, and the lines that it logs. The checker uses the same definitions.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Chance, seedOf } from '../sqlite/kill-load.ts'

export const LEASE = 300
/** For processes side by side, which are stopped for longer. */
export const LEASE_OF_MANY = 1_000
export const HEARTBEAT = 100

/** By type of event, the flows that take it. */
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
/** The number of steps of a task; each but the last ends with `snooze`. */
export const STEPS = 3
/** One run at a time, over all keys. */
export const ONE_SLOT: readonly string[] = ['strict']

export interface Told {
  /** The label identifies the event outside the engine; it is also the dedupe id. */
  readonly label: string
  readonly key: string
}

export interface Input {
  readonly type: Topic
  readonly dedupeId: string
  readonly data: Told
}

/** The whole event follows from the label, so that it can be published again byte for byte. */
export function inputOf(label: string, topic?: Topic): Input {
  const chance = new Chance(seedOf(`event ${label}`))
  const type = topic ?? TOPICS[chance.below(TOPICS.length)] ?? 'ping'
  return { type, dedupeId: label, data: { label, key: `k${chance.below(KEYS)}` } }
}

/** Some events cannot succeed. */
export function isDoomed(label: string): boolean {
  return new Chance(seedOf(`doom ${label}`)).happens(0.02)
}

/** A few runs take so long that most kills hit them: such a run becomes a suspect, and at last a dead letter. */
export function isSlow(label: string): boolean {
  return new Chance(seedOf(`pace ${label}`)).happens(0.005)
}

/** What a run publishes in every attempt. */
export function parcelsOf(flow: string, run: string, step: number): readonly string[] {
  if (flow === 'steps') return [`${run}/${step}`]
  if (flow !== 'relay') return []
  return new Chance(seedOf(`parcels ${run}`)).happens(0.5) ? [`${run}/0`, `${run}/1`] : [`${run}/0`]
}

/** How a handler ended. */
export type How = 'done' | 'again' | 'failed' | 'permanent' | 'aborted'

/** One log line each. Times are from the machine's monotonic clock, which all processes share. */
export type Line =
  | { readonly kind: 'opened'; readonly at: number }
  | { readonly kind: 'sending'; readonly labels: readonly string[] }
  | { readonly kind: 'acked'; readonly answers: readonly (readonly [label: string, answer: string])[] }
  /** An event of an earlier life: `acked` there, or without a reply. */
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
  /** What the engine reported of a run after its settlement was acknowledged. */
  | { readonly kind: 'told'; readonly at: number; readonly name: string; readonly run: string }
  /** The process stalled, because it had no core or was stopped. */
  | { readonly kind: 'stalled'; readonly from: number; readonly at: number }
  /** A call of the store and its reply: the lanes and tokens that were settled, and those that were leased. */
  | {
      readonly kind: 'turned'
      readonly sent: number
      readonly at: number
      readonly settled: readonly (readonly [lane: string, token: number, answer: string])[]
      readonly claimed: readonly (readonly [lane: string, token: number])[]
    }
  /** A settlement long after the end of the lease. */
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

/** The lines of a life. The last one may be cut off; it then counts as not written. */
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
