// `LANE_TRANSITIONS` is the state machine of a lane as one table. ARCHITECTURE.md shows it. A test walks the real transitions at
// random, and finds every arrow here and no other.
import { NEVER, type Millis } from '../clock.ts'
import { isLiveRun, type HoldState, type Lane, type RunState } from './lane.ts'

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

/** The fields of a lane that decide its state. */
interface LaneStateFields extends Pick<Lane, 'due' | 'blocks'> {
  readonly run: Pick<RunState, 'state' | 'until'> | undefined
  readonly hold: Pick<HoldState, 'until'> | undefined
}

export function getLaneState(lane: LaneStateFields, now: Millis): LaneState {
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
  | 'retry-dead-letter'
  | 'drop-dead-letter'
  | 'time'

type TargetStates = Readonly<Partial<Record<LaneState, readonly LaneState[]>>>

const AFTER_RUN: readonly LaneState[] = ['idle', 'waiting', 'ready', 'held']
const NOT_LIVE: readonly LaneState[] = ['idle', 'waiting', 'ready', 'lapsed', 'retrying', 'snoozed', 'blocked']

const UNCHANGED: Readonly<Record<LaneState, readonly LaneState[]>> = {
  idle: ['idle'],
  waiting: ['waiting'],
  ready: ['ready'],
  running: ['running'],
  lapsed: ['lapsed'],
  retrying: ['retrying'],
  snoozed: ['snoozed'],
  blocked: ['blocked'],
  held: ['held'],
}

/** `unchangedBut` leaves every state as it is, except for the given ones. */
function unchangedBut(changes: TargetStates): TargetStates {
  return { ...UNCHANGED, ...changes }
}

export const LANE_TRANSITIONS: Readonly<Record<LaneTransition, TargetStates>> = {
  place: unchangedBut({ idle: ['waiting', 'ready'], waiting: ['waiting', 'ready'] }),
  claim: { ready: ['running'], lapsed: ['running'], retrying: ['running'], snoozed: ['running'] },
  /** The fourth lapse. */
  crash: { lapsed: ['idle', 'waiting', 'ready', 'blocked'] },
  done: { running: [...AFTER_RUN, 'blocked'] },
  retry: { running: ['retrying', 'held'] },
  snoozed: { running: ['snoozed', 'held'] },
  cancelled: { running: ['waiting', 'ready', 'snoozed', 'held'] },
  dead: { running: [...AFTER_RUN, 'blocked'] },
  'run-now': {
    waiting: ['ready'],
    ready: ['ready'],
    retrying: ['retrying'],
    snoozed: ['snoozed'],
    blocked: ['blocked'],
    held: ['held'],
  },
  hold: { ...Object.fromEntries(NOT_LIVE.map((state) => [state, ['held']])), running: ['running'], held: ['held'] },
  /** Also for an expired hold, which changes nothing. */
  unhold: unchangedBut({ held: NOT_LIVE }),
  'retry-dead-letter': unchangedBut({ idle: ['ready'], waiting: ['ready'], blocked: ['ready'] }),
  'drop-dead-letter': unchangedBut({
    ready: ['idle', 'waiting', 'ready', 'blocked'],
    blocked: ['idle', 'waiting', 'ready', 'blocked'],
  }),
  time: { waiting: ['ready'], running: ['lapsed', 'held'], held: NOT_LIVE },
}
