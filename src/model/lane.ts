// A lane is one flow and one key: the place where events wait. This is its state; the four transitions that change it
// are place, claim, settle and steer, one file each, all pure.
import { NEVER, type Millis } from '../clock.ts'
import type { LaneId } from './identity.ts'

/** Live events go before replayed ones (L16). */
export type Rank = 0 | 1

/** Which line a lane stands in when it is ready: failing (L24) and suspect (L12) ones have slots of their own. */
export type Line = 0 | 1 | 2
export const HEALTHY: Line = 0
export const FAILING: Line = 1
export const SUSPECT: Line = 2

export interface Attempt {
  readonly at: Millis
  readonly ms: Millis
  readonly error: string
}

/** One turn of a lane. While it is in the lane its events are fixed: they stand at positions up to `upto`. */
export interface Run {
  readonly id: string
  readonly parent: string
  readonly state: 'running' | 'retrying' | 'again'
  readonly token: number
  /** When the lease ends (running), or when the next attempt is due (retrying, again). */
  readonly until: Millis
  /** Its events: waiting rows of this rank up to this position, or those of the dead letter of the same id. */
  readonly rank: Rank
  readonly upto: number
  readonly letter: boolean
  readonly events: number
  readonly bytes: number
  /** The least arrival + max of its events: past it nothing cancels the run. */
  readonly cap: Millis
  readonly started: Millis
  readonly tries: number
  readonly lapses: number
  readonly failed: boolean
  /** False once it has failed, lapsed, been given back or said `again`: from then on it is frozen (L8). */
  readonly first: boolean
  readonly cancel: boolean
  readonly committed: boolean
  readonly purged: boolean
  /** When its first attempt failed, 0 before. */
  readonly failingSince: Millis
  /** When it first said `again`, 0 before. */
  readonly againSince: Millis
  /** What the handler keeps from one `again` to the next, base64; '' for nothing. */
  readonly state64: string
  readonly attempts: readonly Attempt[]
}

export interface Hold {
  readonly reason: string
  readonly by: string
  readonly until: Millis
}

export interface Lane {
  /** The store's own handle; 0 until stored. */
  readonly row: number
  readonly id: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly group: string
  /** The last position drawn. */
  readonly tail: number
  /** Live events that wait, without those of the run. */
  readonly waiting: number
  readonly bytes: number
  /** The deadline of their window (L3); NEVER when it is not set. */
  readonly window: Millis
  /** The least arrival + max of them. */
  readonly cap: Millis
  /** A claim left some of them over: they are due when the run ends (L7). */
  readonly left: boolean
  readonly replays: number
  readonly replayDue: Millis
  /** Live turns taken while replays waited. */
  readonly passed: number
  /** Dead letters of this lane that were queued by hand. */
  readonly letters: number
  readonly letterDue: Millis
  /** Dead letters of this lane that block it. */
  readonly blocks: number
  readonly hold: Hold | undefined
  /** When the last run ended, 0 if nobody asked to keep that (`leading` does, L3). */
  readonly ended: Millis
  readonly keepUntil: Millis
  readonly run: Run | undefined
  /** The place in the index of deadlines: timer and queue at once (L5). NEVER: not in it. */
  readonly due: Millis
  readonly ticket: number
  readonly line: Line
}

export interface LaneName {
  readonly id: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly group: string
}

export function emptyLane(name: LaneName): Lane {
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
    left: false,
    replays: 0,
    replayDue: NEVER,
    passed: 0,
    letters: 0,
    letterDue: NEVER,
    blocks: 0,
    hold: undefined,
    ended: 0,
    keepUntil: 0,
    run: undefined,
    due: NEVER,
    ticket: 0,
    line: HEALTHY,
  }
}

/** The counter of the store: tickets, tokens and run numbers come from it and never repeat (L1, L5). */
export type Draw = () => number

/** What every transition needs from the store it runs in. */
export interface Moment {
  readonly now: Millis
  readonly draw: Draw
}

/** When the lane has to be looked at next, whatever for. */
function dueOf(lane: Lane): Millis {
  const natural = naturalDue(lane)
  return lane.hold === undefined ? natural : Math.max(natural, lane.hold.until)
}

function naturalDue(lane: Lane): Millis {
  if (lane.run !== undefined) return lane.run.until
  if (lane.letters > 0) return lane.letterDue
  if (lane.blocks > 0) return NEVER
  return Math.min(lane.window, lane.replayDue)
}

function lineOf(run: Run | undefined): Line {
  if (run === undefined) return HEALTHY
  // A live run is looked at again only if it lapses: it then stands where that lapse puts it.
  const lapses = run.state === 'running' ? run.lapses + 1 : run.lapses
  if (lapses >= 2) return SUSPECT
  return run.failed ? FAILING : HEALTHY
}

/**
 * Puts the lane where its state says in the index. A deadline that is set anew draws a new ticket. The lane is one that a
 * transition has just made and nobody else has: it is completed, for another copy of so many fields would cost as much
 * as the transition.
 */
export function arm(made: Lane, draw: Draw, set: 'if-moved' | 'anew'): Lane {
  const lane: { -readonly [Field in keyof Lane]: Lane[Field] } = made
  const due = dueOf(lane)
  if (due !== NEVER && (set === 'anew' || due !== lane.due)) lane.ticket = draw()
  lane.due = due
  lane.line = lineOf(lane.run)
  return lane
}

/** Nothing waits, runs, blocks or is held, and nobody asks when it last ran. */
export function isEmpty(lane: Lane, now: Millis): boolean {
  return isIdle(lane) && !isHeld(lane, now) && lane.keepUntil <= now
}

/** Of a lane in which nothing is left a hold that is over stays so, should the clock be set back. */
export function withoutPastHold(lane: Lane, now: Millis): Lane {
  return lane.hold !== undefined && isIdle(lane) && !isHeld(lane, now) ? { ...lane, hold: undefined } : lane
}

function isHeld({ hold }: Lane, now: Millis): boolean {
  return hold !== undefined && hold.until > now
}

function isIdle({ run, waiting, replays, letters, blocks }: Lane): boolean {
  return run === undefined && waiting === 0 && replays === 0 && letters === 0 && blocks === 0
}

export function isLive(run: Run, now: Millis): boolean {
  return run.state === 'running' && run.until > now
}
