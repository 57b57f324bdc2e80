// An alert: a condition over the figures of an app that must hold for a while before anybody is told, and be over for as long
// before it is called off. Its course is a pure function.
import type { Millis } from '../clock.ts'
import type { Duration } from './duration.ts'
import type { SnapshotHolder } from './hygiene.ts'

/** What a condition can ask. Of the last 24 hours unless it says otherwise; `undefined` where nothing has happened yet. */
export interface AlertFigures {
  readonly now: Millis
  readonly deadLetters: number
  /** From arrival to done, of 95 in a hundred. */
  readonly p95: Millis | undefined
  /** Events that failed or died and have not recovered, of all whose run ended: 0 to 1. */
  readonly failureRate: number | undefined
  /** The same of the last so much, from a minute to a day. */
  readonly over: (window: Duration) => AlertWindow
  /** Lanes whose window is over and that wait for their turn, now, of flows that are not paused. */
  readonly depth: number
  /** How long the first lane in line has been due, of the flow where that is longest. */
  readonly oldest: Millis
  readonly storeBytes: number
  /** Of 0 to 1: how full the disk is that the store's file lies on; undefined if it is no file. */
  readonly diskUsed: number | undefined
  /** `keep.bytes`, if that was said. */
  readonly keepBytes: number | undefined
  /** How long each limit is paused from now on, and how long the last of those waits who want a slot. */
  readonly limits: readonly { readonly name: string; readonly pausedFor: Millis; readonly waitsFor: Millis }[]
  /** How far the clock of this process is from that of the store. */
  readonly clockOffset: Millis
  /** PostgreSQL: rows of the store that are done with and not cleared away yet; undefined where nobody can say. */
  readonly deadRows: number | undefined
  /** PostgreSQL: whose open transaction or snapshot keeps them from being cleared away for longest. */
  readonly snapshot: SnapshotHolder | undefined
}

export interface AlertWindow {
  readonly p95: Millis | undefined
  readonly failureRate: number | undefined
  /** Events that are done. */
  readonly done: number
  /** Events of which the failure rate is. */
  readonly ended: number
}

export interface AlertRule {
  readonly name: string
  /** Whether it is so; a text says what is. */
  readonly when: (figures: AlertFigures) => boolean | string
  readonly for: Millis
}

export type AlertState =
  | { readonly kind: 'clear' }
  /** It holds, but not yet for long enough. */
  | { readonly kind: 'pending'; readonly since: Millis }
  /** The text is that of the last look. */
  | { readonly kind: 'raised'; readonly since: Millis; readonly text: string }
  /** It no longer holds, but not yet for long enough. */
  | { readonly kind: 'easing'; readonly since: Millis; readonly text: string; readonly easedAt: Millis }

/** As it is kept. `broken`: what its condition threw when it was last asked. */
export type AlertRecord = AlertState & { readonly broken?: string }

export const CLEAR: AlertState = { kind: 'clear' }

export interface Look {
  readonly now: Millis
  /** What is so; undefined: it is not. */
  readonly text: string | undefined
  readonly for: Millis
}

/** `told`: what people are to hear of it, once each. */
export interface Course {
  readonly state: AlertState
  readonly told: 'raised' | 'cleared' | undefined
}

export function next(state: AlertState, look: Look): Course {
  return look.text === undefined ? eased(state, look) : held(state, look, look.text)
}

function held(state: AlertState, { now, for: least }: Look, text: string): Course {
  if (state.kind === 'raised' || state.kind === 'easing') {
    return { state: { kind: 'raised', since: state.since, text }, told: undefined }
  }
  const since = state.kind === 'pending' ? state.since : now
  if (now - since < least) return { state: { kind: 'pending', since }, told: undefined }
  return { state: { kind: 'raised', since, text }, told: 'raised' }
}

function eased(state: AlertState, { now, for: least }: Look): Course {
  if (state.kind === 'clear' || state.kind === 'pending') return { state: CLEAR, told: undefined }
  const easedAt = state.kind === 'easing' ? state.easedAt : now
  if (now - easedAt >= least) return { state: CLEAR, told: 'cleared' }
  return { state: { kind: 'easing', since: state.since, text: state.text, easedAt }, told: undefined }
}
