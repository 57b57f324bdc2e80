// An alert is a condition over the stats of an app. It is raised after the condition has held for a while, and cleared after it has
// not held for as long. `advanceAlert` is a pure function.
import type { Millis } from '../clock.ts'
import type { Duration } from './duration.ts'
import type { SnapshotHolder } from './vacuum-stats.ts'

/** `AlertStats` is what a condition can read, by default over the last 24 hours. `undefined` means no data yet. */
export interface AlertStats {
  readonly now: Millis
  readonly deadLetters: number
  /** The 95th percentile of the time from arrival to done. */
  readonly p95: Millis | undefined
  /** The share of events with an ended run that failed or died and have not recovered: 0 to 1. */
  readonly failureRate: number | undefined
  /** The same stats over another window, from a minute to a day. */
  readonly over: (window: Duration) => AlertWindowStats
  /** How many lanes are ready now, in flows that are not paused. */
  readonly depth: number
  /** How long the first ready lane has been due, in the flow where that is longest. */
  readonly oldest: Millis
  /** The same for the flows that are paused. */
  readonly oldestPaused: Millis
  readonly storeBytes: number
  /** How full the disk of the store's file is, from 0 to 1; undefined if the store is not a file. */
  readonly diskUsed: number | undefined
  /** Redis: how full the memory of the server is, from 0 to 1; undefined if the server has no `maxmemory`. */
  readonly memoryUsed: number | undefined
  /** The option `keep.bytes`, if it is set. */
  readonly keepBytes: number | undefined
  /** How long each limit stays paused, and how long the last caller waits for its slot. */
  readonly limits: readonly { readonly name: string; readonly pausedFor: Millis; readonly waitsFor: Millis }[]
  /** The difference between the clock of this process and that of the store. */
  readonly clockOffset: Millis
  /** PostgreSQL: dead rows that the server has not vacuumed yet; undefined if unknown. */
  readonly deadRows: number | undefined
  /** PostgreSQL: the oldest open transaction or snapshot, which keeps dead rows from being vacuumed. */
  readonly snapshot: SnapshotHolder | undefined
}

export interface AlertWindowStats {
  readonly p95: Millis | undefined
  readonly failureRate: number | undefined
  /** How many events are done. */
  readonly done: number
  /** How many events have ended: the denominator of the failure rate. */
  readonly ended: number
}

export interface AlertRule {
  readonly name: string
  /** Whether the condition holds; a text describes what holds. */
  readonly when: (stats: AlertStats) => boolean | string
  readonly for: Millis
}

export type AlertState =
  | { readonly kind: 'clear' }
  /** The condition holds, but not for long enough yet. */
  | { readonly kind: 'pending'; readonly since: Millis }
  /** `text` is that of the last check. */
  | { readonly kind: 'raised'; readonly since: Millis; readonly text: string }
  /** The condition no longer holds, but not for long enough yet. */
  | { readonly kind: 'easing'; readonly since: Millis; readonly text: string; readonly easedAt: Millis }

/** `AlertRecord` is an alert as it is stored. `broken` is the error that its condition threw at the last check. */
export type AlertRecord = AlertState & { readonly broken?: string }

export const CLEAR_ALERT: AlertState = { kind: 'clear' }

export interface AlertCheck {
  readonly now: Millis
  /** The description of what holds; undefined if the condition does not hold. */
  readonly text: string | undefined
  readonly for: Millis
}

/** `AlertTransition` is the next state. `change` is the notification to send, once each. */
export interface AlertTransition {
  readonly state: AlertState
  readonly change: 'raised' | 'cleared' | undefined
}

export function advanceAlert(state: AlertState, look: AlertCheck): AlertTransition {
  return look.text === undefined ? advanceWhileFalse(state, look) : advanceWhileTrue(state, look, look.text)
}

function advanceWhileTrue(state: AlertState, { now, for: least }: AlertCheck, text: string): AlertTransition {
  if (state.kind === 'raised' || state.kind === 'easing') {
    return { state: { kind: 'raised', since: state.since, text }, change: undefined }
  }
  const since = state.kind === 'pending' ? state.since : now
  if (now - since < least) return { state: { kind: 'pending', since }, change: undefined }
  return { state: { kind: 'raised', since, text }, change: 'raised' }
}

function advanceWhileFalse(state: AlertState, { now, for: least }: AlertCheck): AlertTransition {
  if (state.kind === 'clear' || state.kind === 'pending') return { state: CLEAR_ALERT, change: undefined }
  const easedAt = state.kind === 'easing' ? state.easedAt : now
  if (now - easedAt >= least) return { state: CLEAR_ALERT, change: 'cleared' }
  return { state: { kind: 'easing', since: state.since, text: state.text, easedAt }, change: undefined }
}
