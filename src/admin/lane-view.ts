// How operators name and see a lane. They name a lane by flow and key; a store identifies it by one hash of both.
import { NEVER, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import { keylessLaneId, laneId, type LaneId } from '../model/identity.ts'
import type { HoldState, Lane, RunState } from '../model/lane.ts'
import { getLaneState, type LaneState } from '../model/lane-states.ts'
import { findDeferringLimit } from '../observe/explain/lane-facts.ts'

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
  /** When the window of the waiting events ends, and the time beyond which no event can move that. */
  readonly window: Millis | undefined
  readonly cap: Millis | undefined
  /** The limit that deferred the run. */
  readonly deferredBy: string | undefined
}

interface LaneHold extends Pick<HoldState, 'reason' | 'by'> {
  /** Undefined: until somebody ends the hold. */
  readonly until: Millis | undefined
}

/** `until` is when the lease expires, or the next attempt is due. */
type LaneRun = Pick<
  RunState,
  'id' | 'state' | 'started' | 'until' | 'events' | 'bytes' | 'tries' | 'lapses' | 'cancel' | 'attempts'
>

/** `toLaneView` formats a lane for people: its state, and times that are undefined instead of infinite. */
export function toLaneView(lane: Lane, now: Millis): LaneView {
  const { id, flow, key, tenant, waiting, bytes, replays, queuedDeadLetters, blocks, hold, run } = lane
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
    queued: queuedDeadLetters,
    blocks,
    hold: hold === undefined || hold.until <= now ? undefined : toLaneHold(hold),
    run: run === undefined ? undefined : toLaneRun(run),
    window: finiteTime(lane.window),
    cap: finiteTime(lane.cap),
    deferredBy: run?.state === 'snoozed' ? findDeferringLimit(run.state64) : undefined,
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

/** `resolveLaneId` returns the id of a lane. In a flow without `key`, the key of a lane is the id of its event. */
export function resolveLaneId(flows: ReadonlyMap<string, Flow>, flow: string, key: string): LaneId {
  const known = flows.get(flow)
  return known !== undefined && known.selectKeys === undefined ? keylessLaneId(flow, key) : laneId(flow, key)
}

/** `possibleLaneIds` returns two ids for a flow of another app, which may or may not have a `key`. */
export function possibleLaneIds(flows: ReadonlyMap<string, Flow>, flow: string, key: string): readonly LaneId[] {
  // Both ids are equal for a key that does not start like an event id.
  return flows.has(flow)
    ? [resolveLaneId(flows, flow, key)]
    : [...new Set([laneId(flow, key), keylessLaneId(flow, key)])]
}
