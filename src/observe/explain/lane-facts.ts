// `toLaneRecordFacts` reads the facts from a lane's record. It uses the model's own transitions, so both always agree.
import { NEVER, type Millis } from '../../clock.ts'
import { isLiveRun, type Lane, type RunState } from '../../model/lane.ts'
import { getLaneState } from '../../model/lane-states.ts'
import { steer } from '../../model/steer.ts'
import type { LaneRecordFacts, LaneRunFacts } from './facts.ts'
import { redact } from '../log/redact.ts'

/** `toLaneRecordFacts` takes the flow's number of attempts as `tries`, if it is known. */
export function toLaneRecordFacts(lane: Lane | undefined, tries: number | undefined, now: Millis): LaneRecordFacts {
  const hold = lane?.hold
  const laneState = lane === undefined ? 'empty' : getLaneState(lane, now)
  const deadline = finiteTime(lane?.due)
  return {
    laneState,
    behindHold: lane !== undefined && laneState === 'held' ? getLaneState(withoutHold(lane, now), now) : undefined,
    now,
    deadline,
    in: deadline === undefined ? undefined : deadline - now,
    latest: finiteTime(lane?.cap),
    waiting: lane?.waiting ?? 0,
    replays: lane?.replays ?? 0,
    queued: lane?.letters ?? 0,
    leftOver: lane?.left ?? false,
    ended: lane === undefined || lane.ended === 0 ? undefined : lane.ended,
    keptUntil: lane !== undefined && lane.keepUntil > now ? finiteTime(lane.keepUntil) : undefined,
    heldBy: hold?.by,
    holdReason: hold?.reason,
    heldUntil: finiteTime(hold?.until),
    holdOver: hold !== undefined && hold.until <= now,
    ...(lane?.run === undefined ? NO_RUN : toLaneRunFacts(lane.run, deadline, tries, now)),
  }
}

const NO_RUN: LaneRunFacts = {
  run: undefined,
  kind: undefined,
  attempt: undefined,
  tries: undefined,
  triesOf: undefined,
  triesLeft: undefined,
  nextTry: undefined,
  started: undefined,
  leaseEnds: undefined,
  events: undefined,
  lapses: undefined,
  error: undefined,
  againSince: undefined,
  putOffBy: undefined,
  cancelAsked: false,
  purged: false,
}

function toLaneRunFacts(
  run: RunState,
  due: Millis | undefined,
  triesOf: number | undefined,
  now: Millis,
): LaneRunFacts {
  const leased = run.state === 'running'
  return {
    run: run.id,
    kind: run.letter ? 'letter' : run.rank === 1 ? 'replay' : 'live',
    attempt: run.tries + 1,
    tries: run.tries,
    triesOf,
    triesLeft: triesOf === undefined ? undefined : Math.max(0, triesOf - run.tries),
    nextTry: leased ? undefined : due,
    started: run.started,
    leaseEnds: leased ? finiteTime(run.until) : undefined,
    events: run.events,
    lapses: leased && !isLiveRun(run, now) ? run.lapses + 1 : run.lapses,
    error: redact(run.attempts.at(-1)?.error),
    againSince: run.againSince === 0 ? undefined : run.againSince,
    putOffBy: run.state === 'snoozed' ? findDeferringLimit(run.state64) : undefined,
    cancelAsked: run.cancel,
    purged: run.purged,
  }
}

/** Returns the lane as it would be if the hold were lifted now. */
function withoutHold(lane: Lane, now: Millis): Lane {
  return steer(lane, { kind: 'unhold' }, { now, draw: () => lane.ticket }) ?? lane
}

function finiteTime(moment: Millis | undefined): Millis | undefined {
  return moment === undefined || moment >= NEVER ? undefined : moment
}

/** Returns the limit whose name the engine stored with the run when it deferred it. */
function findDeferringLimit(state64: string): string | undefined {
  if (state64 === '') return undefined
  const kept = JSON.parse(Buffer.from(state64, 'base64').toString()) as { readonly putOffBy?: string } | null
  return kept?.putOffBy
}
