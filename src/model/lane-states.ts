// The state machine of a lane as one table: which states there are, and where each transition can lead from each.
// ARCHITECTURE.md shows it; a test walks the real transitions at random and finds every arrow here and no other.
import { NEVER, type Millis } from '../clock.ts'
import { isLive, type Lane } from './lane.ts'

export type LaneState =
  /** Nothing to do; kept only if `leading` may ask, otherwise gone. */
  | 'idle'
  /** Its window is open. */
  | 'waiting'
  /** Its deadline has passed: it stands in line. */
  | 'ready'
  | 'running'
  /** Its lease is over and nobody has taken the run up again. */
  | 'lapsed'
  /** Its run failed and waits for the next attempt. */
  | 'retrying'
  /** Its run asked to be called again, or was given back. */
  | 'again'
  /** It waits for a dead letter. */
  | 'blocked'
  /** Somebody holds it. */
  | 'held'

export function stateOf(lane: Lane, now: Millis): LaneState {
  const { run } = lane
  if (run !== undefined && isLive(run, now)) return 'running'
  if (lane.hold !== undefined && lane.hold.until > now) return 'held'
  if (run !== undefined) return run.state === 'running' ? 'lapsed' : run.state
  if (lane.due <= now) return 'ready'
  if (lane.due < NEVER) return 'waiting'
  return lane.blocks > 0 ? 'blocked' : 'idle'
}

export type Transition =
  | 'place'
  | 'claim'
  | 'crash'
  | 'done'
  | 'retry'
  | 'again'
  | 'cancelled'
  | 'dead'
  | 'run-now'
  | 'hold'
  | 'unhold'
  | 'retry-letter'
  | 'drop-letter'
  | 'time'

type Arrows = Readonly<Partial<Record<LaneState, readonly LaneState[]>>>

const AFTER_A_RUN: readonly LaneState[] = ['idle', 'waiting', 'ready', 'held']

export const LANE_TABLE: Readonly<Record<Transition, Arrows>> = {
  place: {
    idle: ['waiting', 'ready'],
    waiting: ['waiting', 'ready'],
    ready: ['ready'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    again: ['again'],
    blocked: ['blocked'],
    held: ['held'],
  },
  claim: { ready: ['running'], lapsed: ['running'], retrying: ['running'], again: ['running'] },
  /** The lapse that is one too many. */
  crash: { lapsed: ['idle', 'waiting', 'ready', 'blocked'] },
  done: { running: [...AFTER_A_RUN, 'blocked'] },
  retry: { running: ['retrying', 'held'] },
  again: { running: ['again', 'held'] },
  cancelled: { running: ['waiting', 'ready', 'again', 'held'] },
  dead: { running: [...AFTER_A_RUN, 'blocked'] },
  'run-now': {
    waiting: ['ready'],
    ready: ['ready'],
    retrying: ['retrying'],
    again: ['again'],
    blocked: ['blocked'],
    held: ['held'],
  },
  hold: {
    idle: ['held'],
    waiting: ['held'],
    ready: ['held'],
    running: ['running'],
    lapsed: ['held'],
    retrying: ['held'],
    again: ['held'],
    blocked: ['held'],
    held: ['held'],
  },
  /** Also of a hold that is over, which changes nothing. */
  unhold: {
    held: ['idle', 'waiting', 'ready', 'lapsed', 'retrying', 'again', 'blocked'],
    idle: ['idle'],
    waiting: ['waiting'],
    ready: ['ready'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    again: ['again'],
    blocked: ['blocked'],
  },
  'retry-letter': {
    idle: ['ready'],
    waiting: ['ready'],
    ready: ['ready'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    again: ['again'],
    blocked: ['ready'],
    held: ['held'],
  },
  'drop-letter': {
    idle: ['idle'],
    waiting: ['waiting'],
    ready: ['idle', 'waiting', 'ready', 'blocked'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    again: ['again'],
    blocked: ['idle', 'waiting', 'ready', 'blocked'],
    held: ['held'],
  },
  time: {
    waiting: ['ready'],
    running: ['lapsed', 'held'],
    held: ['idle', 'waiting', 'ready', 'lapsed', 'retrying', 'again', 'blocked'],
  },
}
