// `endRun` and its neighbours are transition 3 of 4: a run ends, or waits for its next attempt (L6, L6c, L8, L9, L13). Only the
// holder of the live token gets here; the store returns `lost` to all others.
import { addDelay, NEVER, type Millis } from '../clock.ts'
import { scheduleLane, type Attempt, type Lane, type TransitionContext, type RunState } from './lane.ts'
import { isCancellable } from './place.ts'

/** `RunOutcome` is how an attempt ended. The flow's policy computes the delays; a store adds them to its own clock. */
export type RunOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly after: Millis }
  | { readonly kind: 'snoozed'; readonly after: Millis; readonly state64: string }
  | { readonly kind: 'dead'; readonly reason: string; readonly block: boolean }
  | { readonly kind: 'dropped'; readonly reason: string }
  | { readonly kind: 'cancelled' }
  /** The process gives the run back at no cost: it stops, or the slot of a limit is far away (M6). */
  | { readonly kind: 'released'; readonly after: Millis; readonly state64: string }
  /** The named events were not accepted: some are retried after a delay, some are dead. All others are done. */
  | {
      readonly kind: 'partial'
      readonly retry: readonly string[]
      readonly after: Millis
      readonly dead: readonly string[]
      readonly reason: string
      readonly block: boolean
    }

/**
 * `DeathNotice` says whether the store announces a run that becomes a dead letter, by an event `sluice/run.dead` in the same commit. It
 * is the epoch up to which the caller knows that no flow takes such events: a store with newer routes announces. -1: some flow takes
 * them. Undefined: the store never announces.
 */
export type DeathNotice = number

export interface RunEndOptions {
  /** What the events that arrived during the run wait for: their window, or only the end of the run. */
  readonly whileRunning: 'window' | 'requeue'
  /** How long the lane remembers the end of its last run (the `quiet` of a `leading` window). */
  readonly keep: Millis
  readonly announceDeadAfter?: DeathNotice | undefined
}

/** `endRun` returns the lane after its run is over, however it ended. Waiting events get their deadline and a new ticket (L6, L7). */
export function endRun(lane: Lane, end: RunEndOptions, context: TransitionContext): Lane {
  const now = context.now
  const tookWaiting = lane.run !== undefined && lane.run.rank === 0 && !lane.run.isDeadLetter
  const atOnce = lane.hasRemaining || (end.whileRunning === 'requeue' && tookWaiting)
  const ended: Lane = {
    ...lane,
    run: undefined,
    hasRemaining: false,
    window: lane.waiting === 0 ? NEVER : atOnce ? now : Math.max(lane.window, now),
    cap: lane.waiting === 0 ? NEVER : lane.hasRemaining ? Math.min(lane.cap, now) : lane.cap,
    replayDue: lane.replays === 0 ? NEVER : now,
    deadLetterDue: lane.queuedDeadLetters === 0 ? NEVER : now,
    ...rememberRunEnd(lane, end, now),
  }
  return scheduleLane(ended, context.draw, 'anew')
}

/** `rememberRunEnd` stores the time at which a run ended, for as long as `leading` needs it (L3). */
export function rememberRunEnd(lane: Lane, { keep }: RunEndOptions, now: Millis): Pick<Lane, 'ended' | 'keepUntil'> {
  return keep === 0 ? { ended: lane.ended, keepUntil: lane.keepUntil } : { ended: now, keepUntil: addDelay(now, keep) }
}

/** `dissolveRun` returns the events to their positions, in one window with the events that arrived meanwhile (L6c). */
export function dissolveRun(lane: Lane, run: RunState, end: RunEndOptions, context: TransitionContext): Lane {
  const dueNow = lane.hasRemaining || lane.waiting === 0 || run.full
  const back: Lane = {
    ...endRun(lane, end, context),
    waiting: lane.waiting + run.events,
    bytes: lane.bytes + run.bytes,
    cap: Math.min(lane.cap, run.cap, dueNow ? context.now : NEVER),
    // A dissolved run does not count as ended.
    ended: lane.ended,
    keepUntil: lane.keepUntil,
    window: dueNow ? context.now : Math.max(context.now, Math.min(lane.window, run.cap)),
  }
  return scheduleLane(back, context.draw, 'anew')
}

/** `canDissolveRun` returns whether a cancelled run was really asked to cancel. Otherwise it is only given back. */
export function canDissolveRun(run: RunState, now: Millis): boolean {
  return run.cancel && isCancellable(run, now)
}

/** `scheduleNextAttempt` returns the lane with its run frozen until the next attempt. */
export function scheduleNextAttempt(lane: Lane, run: RunState, until: Millis, context: TransitionContext): Lane {
  return scheduleLane({ ...lane, run: { ...run, until, token: 0, cancel: false, first: false } }, context.draw, 'anew')
}

const MAX_ATTEMPTS_KEPT = 20

function appendAttempt(run: RunState, attempt: Attempt | undefined): readonly Attempt[] {
  return attempt === undefined ? run.attempts : [...run.attempts, attempt].slice(-MAX_ATTEMPTS_KEPT)
}

export function failAttempt(run: RunState, attempt: Attempt | undefined, now: Millis): RunState {
  const failingSince = run.failingSince === 0 ? now : run.failingSince
  return {
    ...run,
    state: 'retrying',
    tries: run.tries + 1,
    failed: true,
    failingSince,
    attempts: appendAttempt(run, attempt),
  }
}

export function snoozeRun(run: RunState, state64: string, now: Millis): RunState {
  return {
    ...run,
    state: 'snoozed',
    state64,
    failed: false,
    snoozedSince: run.snoozedSince === 0 ? now : run.snoozedSince,
  }
}

export function deferRun(run: RunState, state64: string): RunState {
  return { ...run, state: 'snoozed', state64 }
}
