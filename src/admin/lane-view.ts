// `toLaneView` formats a lane for people: its state, and times that are undefined instead of infinite.
import { NEVER, type Millis } from '../clock.ts'
import type { LaneId } from '../model/identity.ts'
import type { Attempt, HoldState, Lane, RunState } from '../model/lane.ts'
import { getLaneState, type LaneState } from '../model/lane-states.ts'

export interface LaneView {
  readonly id: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly state: LaneState
  /** The time at which anything of the lane is due; past or future. */
  readonly due: Millis | undefined
  /** The number of live events outside of the run. `bytes` is their size. */
  readonly waiting: number
  readonly bytes: number
  readonly replays: number
  /** `queued` counts dead letters that an operator has retried; `blocking` those that the lane waits for. */
  readonly queued: number
  readonly blocks: number
  readonly hold: LaneHold | undefined
  readonly run: LaneRun | undefined
}

interface LaneHold {
  readonly reason: string
  readonly by: string
  /** Undefined: until somebody ends the hold. */
  readonly until: Millis | undefined
}

interface LaneRun {
  readonly id: string
  readonly state: RunState['state']
  readonly started: Millis
  /** When the lease expires, or the next attempt is due. */
  readonly until: Millis
  readonly events: number
  readonly bytes: number
  readonly tries: number
  readonly lapses: number
  /** Somebody has asked the run to cancel. */
  readonly cancel: boolean
  readonly attempts: readonly Attempt[]
}

export function toLaneView(lane: Lane, now: Millis): LaneView {
  const { id, flow, key, tenant, waiting, bytes, replays, letters, blocks, hold, run } = lane
  return {
    id,
    flow,
    key,
    tenant,
    state: getLaneState(lane, now),
    due: finiteTime(lane.due),
    waiting,
    bytes,
    replays,
    queued: letters,
    blocks,
    hold: hold === undefined || hold.until <= now ? undefined : toLaneHold(hold),
    run: run === undefined ? undefined : toLaneRun(run),
  }
}

function toLaneHold({ reason, by, until }: HoldState): LaneHold {
  return { reason, by, until: finiteTime(until) }
}

function toLaneRun({ id, state, started, until, events, bytes, tries, lapses, cancel, attempts }: RunState): LaneRun {
  return { id, state, started, until, events, bytes, tries, lapses, cancel, attempts }
}

function finiteTime(at: Millis): Millis | undefined {
  return at === NEVER ? undefined : at
}
