// Reads the facts off a lane's record. Pure, and built on the model's own transitions, so that it cannot drift from them.
import { NEVER, type Millis } from '../clock.ts'
import { isLive, type Lane, type Run } from '../model/lane.ts'
import { stateOf } from '../model/lane-states.ts'
import { steer } from '../model/steer.ts'
import type { RecordFacts, RunFacts } from './explain-facts.ts'
import { scrubbed } from './log-secrets.ts'

/** `tries`: how often the flow tries, where that is known. */
export function recordFacts(lane: Lane | undefined, tries: number | undefined, now: Millis): RecordFacts {
  const hold = lane?.hold
  const laneState = lane === undefined ? 'empty' : stateOf(lane, now)
  const deadline = known(lane?.due)
  return {
    laneState,
    behindHold: lane !== undefined && laneState === 'held' ? stateOf(withoutHold(lane, now), now) : undefined,
    now,
    deadline,
    in: deadline === undefined ? undefined : deadline - now,
    latest: known(lane?.cap),
    waiting: lane?.waiting ?? 0,
    replays: lane?.replays ?? 0,
    queued: lane?.letters ?? 0,
    leftOver: lane?.left ?? false,
    ended: lane === undefined || lane.ended === 0 ? undefined : lane.ended,
    keptUntil: lane !== undefined && lane.keepUntil > now ? known(lane.keepUntil) : undefined,
    heldBy: hold?.by,
    holdReason: hold?.reason,
    heldUntil: known(hold?.until),
    holdOver: hold !== undefined && hold.until <= now,
    ...(lane?.run === undefined ? NO_RUN : runFacts(lane.run, deadline, tries, now)),
  }
}

const NO_RUN: RunFacts = {
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

function runFacts(run: Run, due: Millis | undefined, triesOf: number | undefined, now: Millis): RunFacts {
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
    leaseEnds: leased ? known(run.until) : undefined,
    events: run.events,
    lapses: leased && !isLive(run, now) ? run.lapses + 1 : run.lapses,
    error: scrubbed(run.attempts.at(-1)?.error),
    againSince: run.againSince === 0 ? undefined : run.againSince,
    putOffBy: run.state === 'again' ? putOffBy(run.state64) : undefined,
    cancelAsked: run.cancel,
    purged: run.purged,
  }
}

/** The lane as it would be if the hold were lifted now. */
function withoutHold(lane: Lane, now: Millis): Lane {
  return steer(lane, { kind: 'unhold' }, { now, draw: () => lane.ticket }) ?? lane
}

function known(moment: Millis | undefined): Millis | undefined {
  return moment === undefined || moment >= NEVER ? undefined : moment
}

/** What the engine kept with the run when it put it off. */
function putOffBy(state64: string): string | undefined {
  if (state64 === '') return undefined
  const kept = JSON.parse(Buffer.from(state64, 'base64').toString()) as { readonly putOffBy?: string } | null
  return kept?.putOffBy
}
