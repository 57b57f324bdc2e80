// Transition 3 of 4: a run ends, or waits for its next attempt (L6, L6c, L8, L9, L13). Only the holder of the live
// token gets here; the store answers `lost` to everybody else.
import { later, NEVER, type Millis } from '../clock.ts'
import { arm, type Attempt, type Lane, type Moment, type Run } from './lane.ts'
import { cancellable } from './place.ts'

/** How an attempt ended. Delays are numbers that policy computed; a store adds them to its own clock. */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly after: Millis }
  | { readonly kind: 'again'; readonly after: Millis; readonly state64: string }
  | { readonly kind: 'dead'; readonly reason: string; readonly block: boolean }
  | { readonly kind: 'dropped'; readonly reason: string }
  | { readonly kind: 'cancelled' }
  /** Given back, at no cost: its process stops, or its slot of a limit is far away (M6). */
  | { readonly kind: 'released'; readonly after: Millis; readonly state64: string }
  /** The events named are not accepted: some are tried again after a delay, some are dead. All others are done. */
  | {
      readonly kind: 'partial'
      readonly retry: readonly string[]
      readonly after: Millis
      readonly dead: readonly string[]
      readonly reason: string
      readonly block: boolean
    }

export interface LaneEnd {
  /** What the events that came during the run wait for: their window, or only the end of the run. */
  readonly whileRunning: 'window' | 'requeue'
  /** How long the lane remembers when it last ran (the `quiet` of a `leading` window). */
  readonly keep: Millis
}

/** The lane after its run is over, however it ended. What waits gets its deadline and goes to the tail (L6, L7). */
export function endRun(lane: Lane, end: LaneEnd, at: Moment): Lane {
  const now = at.now
  const tookTheLine = lane.run !== undefined && lane.run.rank === 0 && !lane.run.letter
  const atOnce = lane.left || (end.whileRunning === 'requeue' && tookTheLine)
  const ended: Lane = {
    ...lane,
    run: undefined,
    left: false,
    window: lane.waiting === 0 ? NEVER : atOnce ? now : Math.max(lane.window, now),
    cap: lane.waiting === 0 ? NEVER : lane.cap,
    replayDue: lane.replays === 0 ? NEVER : now,
    letterDue: lane.letters === 0 ? NEVER : now,
    ...remembered(lane, end, now),
  }
  return arm(ended, at.draw, 'anew')
}

/** That a run has ended, for as long as somebody asks to know it (`leading` does, L3). */
export function remembered(lane: Lane, { keep }: LaneEnd, now: Millis): Pick<Lane, 'ended' | 'keepUntil'> {
  return keep === 0 ? { ended: lane.ended, keepUntil: lane.keepUntil } : { ended: now, keepUntil: later(now, keep) }
}

/** The events go back to their positions, into one window with what came meanwhile (L6c). */
export function dissolve(lane: Lane, run: Run, end: LaneEnd, at: Moment): Lane {
  const back: Lane = {
    ...endRun(lane, end, at),
    waiting: lane.waiting + run.events,
    bytes: lane.bytes + run.bytes,
    cap: Math.min(lane.cap, run.cap),
    // It was dissolved: it did not end.
    ended: lane.ended,
    keepUntil: lane.keepUntil,
    window: lane.left || lane.waiting === 0 ? at.now : Math.max(at.now, Math.min(lane.window, run.cap)),
  }
  return arm(back, at.draw, 'anew')
}

/** Whether a run that says it was cancelled really was asked to; otherwise it is only given back. */
export function mayDissolve(run: Run, now: Millis): boolean {
  return run.cancel && cancellable(run, now)
}

/** The run waits for its next attempt, frozen. */
export function putOff(lane: Lane, run: Run, until: Millis, at: Moment): Lane {
  return arm({ ...lane, run: { ...run, until, token: 0, cancel: false, first: false } }, at.draw, 'anew')
}

const ATTEMPTS_KEPT = 20

function noted(run: Run, attempt: Attempt | undefined): readonly Attempt[] {
  return attempt === undefined ? run.attempts : [...run.attempts, attempt].slice(-ATTEMPTS_KEPT)
}

export function failedOnce(run: Run, attempt: Attempt | undefined, now: Millis): Run {
  const failingSince = run.failingSince === 0 ? now : run.failingSince
  return { ...run, state: 'retrying', tries: run.tries + 1, failed: true, failingSince, attempts: noted(run, attempt) }
}

export function saidAgain(run: Run, state64: string, now: Millis): Run {
  return { ...run, state: 'again', state64, failed: false, againSince: run.againSince === 0 ? now : run.againSince }
}

export function givenBack(run: Run, state64: string): Run {
  return { ...run, state: 'again', state64 }
}
