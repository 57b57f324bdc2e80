// Transition 4 of 4: a person, or upkeep, acts on a lane (L9, L14, L15). None of it touches a live run's events.
import { NEVER } from '../clock.ts'
import { arm, isLive, type Hold, type Lane, type Moment } from './lane.ts'
import { cancellable } from './place.ts'

export type LaneAct =
  | { readonly kind: 'run-now' }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'hold'; readonly hold: Hold }
  | { readonly kind: 'unhold' }

/** The lane after the act, or undefined when there is nothing to change. */
export function steer(lane: Lane, act: LaneAct, at: Moment): Lane | undefined {
  switch (act.kind) {
    case 'run-now':
      return runNow(lane, at)
    case 'cancel':
      return lane.run !== undefined && cancellable(lane.run, at.now)
        ? { ...lane, run: { ...lane.run, cancel: true } }
        : undefined
    case 'hold':
      return arm({ ...lane, hold: act.hold }, at.draw, 'if-moved')
    case 'unhold':
      return lane.hold === undefined ? undefined : arm({ ...lane, hold: undefined }, at.draw, 'if-moved')
  }
}

function runNow(lane: Lane, at: Moment): Lane | undefined {
  const now = at.now
  if (lane.run !== undefined) {
    if (isLive(lane.run, now) || lane.run.until <= now) return undefined
    return arm({ ...lane, run: { ...lane.run, until: now } }, at.draw, 'if-moved')
  }
  if (lane.waiting === 0 || lane.window <= now) return undefined
  return arm({ ...lane, window: now }, at.draw, 'if-moved')
}

/** A dead letter of this lane was queued by hand: it runs before what waits (L9). */
export function queueLetter(lane: Lane, at: Moment): Lane {
  const due = lane.letters === 0 ? at.now : Math.min(lane.letterDue, at.now)
  return arm({ ...lane, letters: lane.letters + 1, letterDue: due }, at.draw, 'if-moved')
}

export function unqueueLetter(lane: Lane, at: Moment): Lane {
  const letters = lane.letters - 1
  return arm({ ...lane, letters, letterDue: letters === 0 ? NEVER : lane.letterDue }, at.draw, 'if-moved')
}

/** A dead letter that blocked the lane is gone; what waited behind it is due by its own deadline. */
export function unblock(lane: Lane, at: Moment): Lane {
  return arm({ ...lane, blocks: lane.blocks - 1 }, at.draw, 'if-moved')
}

/** Waiting events left the lane without a run: dropped or purged. */
export function withdraw(lane: Lane, gone: Withdrawn, at: Moment): Lane {
  const waiting = lane.waiting - gone.waiting
  const replays = lane.replays - gone.replays
  return arm(
    {
      ...lane,
      waiting,
      bytes: lane.bytes - gone.bytes,
      window: waiting === 0 ? NEVER : lane.window,
      cap: waiting === 0 ? NEVER : lane.cap,
      left: waiting === 0 ? false : lane.left,
      replays,
      replayDue: replays === 0 ? NEVER : lane.replayDue,
      passed: replays === 0 ? 0 : lane.passed,
    },
    at.draw,
    'if-moved',
  )
}

export interface Withdrawn {
  readonly waiting: number
  readonly bytes: number
  readonly replays: number
}
