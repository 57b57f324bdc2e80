// A lane as people look at it: its state by the table, and moments that are there or not, in place of numbers for never.
import { NEVER, type Millis } from '../clock.ts'
import type { LaneId } from '../model/identity.ts'
import type { Attempt, Hold, Lane, Run } from '../model/lane.ts'
import { stateOf, type LaneState } from '../model/lane-states.ts'

export interface LaneView {
  readonly id: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly state: LaneState
  /** When something is due, whatever it is; past or future. */
  readonly due: Millis | undefined
  /** Live events, without those of the run, and their bytes. */
  readonly waiting: number
  readonly bytes: number
  readonly replays: number
  /** Dead letters that were queued by hand, and those that the lane waits for. */
  readonly queued: number
  readonly blocks: number
  readonly hold: LaneHold | undefined
  readonly run: LaneRun | undefined
}

interface LaneHold {
  readonly reason: string
  readonly by: string
  /** Undefined: until somebody ends it. */
  readonly until: Millis | undefined
}

interface LaneRun {
  readonly id: string
  readonly state: Run['state']
  readonly started: Millis
  /** When the lease ends, or the next attempt is due. */
  readonly until: Millis
  readonly events: number
  readonly bytes: number
  readonly tries: number
  readonly lapses: number
  /** It was asked to give up. */
  readonly cancel: boolean
  readonly attempts: readonly Attempt[]
}

export function laneView(lane: Lane, now: Millis): LaneView {
  const { id, flow, key, tenant, waiting, bytes, replays, letters, blocks, hold, run } = lane
  return {
    id,
    flow,
    key,
    tenant,
    state: stateOf(lane, now),
    due: momentOf(lane.due),
    waiting,
    bytes,
    replays,
    queued: letters,
    blocks,
    hold: hold === undefined || hold.until <= now ? undefined : holdView(hold),
    run: run === undefined ? undefined : runView(run),
  }
}

function holdView({ reason, by, until }: Hold): LaneHold {
  return { reason, by, until: momentOf(until) }
}

function runView({ id, state, started, until, events, bytes, tries, lapses, cancel, attempts }: Run): LaneRun {
  return { id, state, started, until, events, bytes, tries, lapses, cancel, attempts }
}

function momentOf(at: Millis): Millis | undefined {
  return at === NEVER ? undefined : at
}
