// `LANE_TRANSITIONS` is the state machine of a lane as one table. ARCHITECTURE.md shows it. A test walks the real transitions at
// random, and finds every arrow here and no other.
import { NEVER, type Millis } from '../clock.ts'
import { isLiveRun, type Lane } from './lane.ts'

export type LaneState =
  /** Nothing to do. The lane is kept only if `leading` needs it. */
  | 'idle'
  /** The window is open. */
  | 'waiting'
  /** The deadline has passed. */
  | 'ready'
  | 'running'
  /** The lease has expired and no process has claimed the run again. */
  | 'lapsed'
  /** The run failed and waits for the next attempt. */
  | 'retrying'
  /** The run was snoozed or given back. */
  | 'snoozed'
  /** The lane waits for a dead letter. */
  | 'blocked'
  /** An operator, an endpoint, a breaker or a limit holds the lane. */
  | 'held'

export function getLaneState(lane: Lane, now: Millis): LaneState {
  const { run } = lane
  if (run !== undefined && isLiveRun(run, now)) return 'running'
  if (lane.hold !== undefined && lane.hold.until > now) return 'held'
  if (run !== undefined) return run.state === 'running' ? 'lapsed' : run.state
  if (lane.due <= now) return 'ready'
  if (lane.due < NEVER) return 'waiting'
  return lane.blocks > 0 ? 'blocked' : 'idle'
}

export type LaneTransition =
  | 'place'
  | 'claim'
  | 'crash'
  | 'done'
  | 'retry'
  | 'snoozed'
  | 'cancelled'
  | 'dead'
  | 'run-now'
  | 'hold'
  | 'unhold'
  | 'retry-letter'
  | 'drop-letter'
  | 'time'

type TargetStates = Readonly<Partial<Record<LaneState, readonly LaneState[]>>>

const STATES_AFTER_RUN: readonly LaneState[] = ['idle', 'waiting', 'ready', 'held']

export const LANE_TRANSITIONS: Readonly<Record<LaneTransition, TargetStates>> = {
  place: {
    idle: ['waiting', 'ready'],
    waiting: ['waiting', 'ready'],
    ready: ['ready'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    snoozed: ['snoozed'],
    blocked: ['blocked'],
    held: ['held'],
  },
  claim: { ready: ['running'], lapsed: ['running'], retrying: ['running'], snoozed: ['running'] },
  /** The fourth lapse. */
  crash: { lapsed: ['idle', 'waiting', 'ready', 'blocked'] },
  done: { running: [...STATES_AFTER_RUN, 'blocked'] },
  retry: { running: ['retrying', 'held'] },
  snoozed: { running: ['snoozed', 'held'] },
  cancelled: { running: ['waiting', 'ready', 'snoozed', 'held'] },
  dead: { running: [...STATES_AFTER_RUN, 'blocked'] },
  'run-now': {
    waiting: ['ready'],
    ready: ['ready'],
    retrying: ['retrying'],
    snoozed: ['snoozed'],
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
    snoozed: ['held'],
    blocked: ['held'],
    held: ['held'],
  },
  /** Also for an expired hold, which changes nothing. */
  unhold: {
    held: ['idle', 'waiting', 'ready', 'lapsed', 'retrying', 'snoozed', 'blocked'],
    idle: ['idle'],
    waiting: ['waiting'],
    ready: ['ready'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    snoozed: ['snoozed'],
    blocked: ['blocked'],
  },
  'retry-letter': {
    idle: ['ready'],
    waiting: ['ready'],
    ready: ['ready'],
    running: ['running'],
    lapsed: ['lapsed'],
    retrying: ['retrying'],
    snoozed: ['snoozed'],
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
    snoozed: ['snoozed'],
    blocked: ['idle', 'waiting', 'ready', 'blocked'],
    held: ['held'],
  },
  time: {
    waiting: ['ready'],
    running: ['lapsed', 'held'],
    held: ['idle', 'waiting', 'ready', 'lapsed', 'retrying', 'snoozed', 'blocked'],
  },
}
