// `Lane` is one flow and one key: the queue in which events wait. Four pure transitions change it: place, claim, settle and steer,
// with one file each.
import { NEVER, type Millis } from '../clock.ts'
import type { LaneId } from './identity.ts'

/** `Rank` 0 is for live events, which go before replayed events with rank 1 (L16). */
export type Rank = 0 | 1

/** `LaneHealth` divides the ready lanes of a flow. Failing (L24) and suspect (L12) lanes have slots of their own. */
export type LaneHealth = 0 | 1 | 2
export const HEALTHY: LaneHealth = 0
export const FAILING: LaneHealth = 1
export const SUSPECT: LaneHealth = 2

export interface Attempt {
  readonly at: Millis
  readonly ms: Millis
  readonly error: string
}

/** `RunState` is the run of a lane. While the run exists its events are fixed: their positions go up to `upto`. */
export interface RunState {
  readonly id: string
  readonly parent: string
  readonly state: 'running' | 'retrying' | 'snoozed'
  readonly token: number
  /** When the lease ends (running), or when the next attempt is due (retrying, snoozed). */
  readonly until: Millis
  /** The events of the run: waiting rows of this rank up to this position, or those of the dead letter with the same id. */
  readonly rank: Rank
  readonly upto: number
  readonly isDeadLetter: boolean
  /** The replay that its events belong to; '' for live events. A dead letter keeps it. */
  readonly replay: string
  readonly events: number
  readonly bytes: number
  /** The earliest arrival + max over its events and the events that `take` superseded. After it, nothing cancels the run. */
  readonly cap: Millis
  readonly started: Millis
  readonly tries: number
  readonly lapses: number
  readonly failed: boolean
  /** False once the run has failed, lapsed, been given back or snoozed. From then on it is frozen (L8). */
  readonly first: boolean
  readonly cancel: boolean
  /** Whether its events and the later ones fill a window. If the run is then cancelled, the lane is due at once (L3). */
  readonly full: boolean
  readonly committed: boolean
  readonly purged: boolean
  /** The time at which the first attempt failed; 0 before. */
  readonly failingSince: Millis
  /** The time of the first snooze; 0 before. */
  readonly snoozedSince: Millis
  /** What the handler keeps from one snooze to the next, in base64; '' for nothing. */
  readonly state64: string
  readonly attempts: readonly Attempt[]
}

export interface HoldState {
  readonly reason: string
  readonly by: string
  readonly until: Millis
}

export interface Lane {
  /** The store's own handle; 0 until the lane is stored. */
  readonly row: number
  readonly id: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly group: string
  /** The last position that was drawn. */
  readonly tail: number
  /** How many live events wait, without those of the run. */
  readonly waiting: number
  readonly bytes: number
  /** The deadline of the window of the waiting events (L3); NEVER if not set. */
  readonly window: Millis
  /** The latest end of that window: the earliest arrival + max of the events for which the window is open. */
  readonly cap: Millis
  /** A claim left some waiting events over. They are due when the run ends (L7). */
  readonly hasRemaining: boolean
  readonly replays: number
  readonly replayDue: Millis
  /** How many claims took live events while replays waited. */
  readonly liveClaims: number
  /** How many dead letters of this lane an operator has queued. */
  readonly queuedDeadLetters: number
  readonly deadLetterDue: Millis
  /** How many dead letters block this lane. */
  readonly blocks: number
  readonly hold: HoldState | undefined
  /** The time at which the last run ended; 0 if nothing needs it (`leading` does, L3). */
  readonly ended: Millis
  readonly keepUntil: Millis
  readonly run: RunState | undefined
  /** The deadline in the index, which is timer and queue at once (L5). NEVER: the lane is not in it. */
  readonly due: Millis
  readonly ticket: number
  readonly health: LaneHealth
}

export type LaneIdentity = Pick<Lane, 'id' | 'flow' | 'key' | 'tenant' | 'group'>

export function createLane(name: LaneIdentity): Lane {
  return {
    row: 0,
    id: name.id,
    flow: name.flow,
    key: name.key,
    tenant: name.tenant,
    group: name.group,
    tail: 0,
    waiting: 0,
    bytes: 0,
    window: NEVER,
    cap: NEVER,
    hasRemaining: false,
    replays: 0,
    replayDue: NEVER,
    liveClaims: 0,
    queuedDeadLetters: 0,
    deadLetterDue: NEVER,
    blocks: 0,
    hold: undefined,
    ended: 0,
    keepUntil: 0,
    run: undefined,
    due: NEVER,
    ticket: 0,
    health: HEALTHY,
  }
}

/** `DrawNumber` draws from the counter of the store. Tickets, tokens and run numbers come from it and never repeat (L1, L5). */
export type DrawNumber = () => number

/** `TransitionContext` is what every transition needs from its store. */
export interface TransitionContext {
  readonly now: Millis
  readonly draw: DrawNumber
}

/** Returns when the lane needs attention next, for any reason. */
function computeDue(lane: Lane): Millis {
  const natural = computeDueWithoutHold(lane)
  return lane.hold === undefined ? natural : Math.max(natural, lane.hold.until)
}

function computeDueWithoutHold(lane: Lane): Millis {
  if (lane.run !== undefined) return lane.run.until
  if (lane.queuedDeadLetters > 0) return lane.deadLetterDue
  if (lane.blocks > 0) return NEVER
  return Math.min(lane.window, lane.replayDue)
}

function computeHealth(run: RunState | undefined): LaneHealth {
  if (run === undefined) return HEALTHY
  // A live run needs attention only if it lapses, so it already has the health that the lapse would give it.
  const lapses = run.state === 'running' ? run.lapses + 1 : run.lapses
  if (lapses >= 2) return SUSPECT
  return run.failed ? FAILING : HEALTHY
}

/**
 * `scheduleLane` gives the lane its place in the index. A deadline that is set anew draws a new ticket. The function changes its
 * argument, which a transition has just created: another copy of so many fields would cost as much as the transition.
 */
export function scheduleLane(changed: Lane, draw: DrawNumber, set: 'if-moved' | 'anew'): Lane {
  const lane: { -readonly [Field in keyof Lane]: Lane[Field] } = changed
  const due = computeDue(lane)
  if (due !== NEVER && (set === 'anew' || due !== lane.due)) lane.ticket = draw()
  lane.due = due
  lane.health = computeHealth(lane.run)
  return lane
}

/** `isEmptyLane` returns whether nothing waits, runs, blocks or is held, and `leading` does not need the end of the last run. */
export function isEmptyLane(lane: Lane, now: Millis): boolean {
  return isIdleLane(lane) && !isHeldLane(lane, now) && lane.keepUntil <= now
}

/** `dropExpiredHold` removes an expired hold from an idle lane, so that it stays expired if the clock is set back. */
export function dropExpiredHold(lane: Lane, now: Millis): Lane {
  return lane.hold !== undefined && isIdleLane(lane) && !isHeldLane(lane, now) ? { ...lane, hold: undefined } : lane
}

function isHeldLane({ hold }: Lane, now: Millis): boolean {
  return hold !== undefined && hold.until > now
}

function isIdleLane({ run, waiting, replays, queuedDeadLetters, blocks }: Lane): boolean {
  return run === undefined && waiting === 0 && replays === 0 && queuedDeadLetters === 0 && blocks === 0
}

export function isLiveRun(run: Pick<RunState, 'state' | 'until'>, now: Millis): boolean {
  return run.state === 'running' && run.until > now
}
