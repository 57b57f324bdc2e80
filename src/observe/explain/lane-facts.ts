// Collects the facts of a lane from its record, from the model's transitions, and from the queue of ready lanes.
import { NEVER, type Millis } from '../../clock.ts'
import { FAILING, isLiveRun, SUSPECT, type Lane, type RunState } from '../../model/lane.ts'
import { getLaneState } from '../../model/lane-states.ts'
import { steer } from '../../model/steer.ts'
import type { FindReply, Store } from '../../store/contract/index.ts'
import type { LaneRecordFacts, LaneRunFacts, QueueFacts } from './facts.ts'
import { redact } from '../log/redact.ts'

/** Enough for most flows, and cheap enough to read at any time. */
const MAX_LANES = 2_000
const PAGE = 500
/** A page may be empty and still have a next page. */
const MAX_PAGES = 8

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
    queued: lane?.queuedDeadLetters ?? 0,
    leftOver: lane?.hasRemaining ?? false,
    ended: lane === undefined || lane.ended === 0 ? undefined : lane.ended,
    keptUntil: lane !== undefined && lane.keepUntil > now ? finiteTime(lane.keepUntil) : undefined,
    heldBy: hold?.by,
    holdReason: hold?.reason,
    heldUntil: finiteTime(hold?.until),
    holdOver: hold !== undefined && hold.until <= now,
    ...(lane?.run === undefined
      ? { cancelAsked: false, purged: false }
      : toLaneRunFacts(lane.run, deadline, tries, now)),
  }
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
    kind: run.isDeadLetter ? 'dead-letter' : run.rank === 1 ? 'replay' : 'live',
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
    snoozedSince: run.snoozedSince === 0 ? undefined : run.snoozedSince,
    deferredBy: run.state === 'snoozed' ? findDeferringLimit(run.state64) : undefined,
    cancelAsked: run.cancel,
    purged: run.purged,
  }
}

/** Returns the lane as it would be if the hold were lifted now. */
function withoutHold(lane: Lane, now: Millis): Lane {
  return steer(lane, { kind: 'unhold' }, { now, draw: () => lane.ticket }) ?? lane
}

function finiteTime(time: Millis | undefined): Millis | undefined {
  return time === undefined || time >= NEVER ? undefined : time
}

/** `findDeferringLimit` returns the limit whose name the engine stored with the run when it deferred it. */
export function findDeferringLimit(state64: string): string | undefined {
  if (state64 === '') return undefined
  const kept = JSON.parse(Buffer.from(state64, 'base64').toString()) as { readonly deferredBy?: string } | null
  return kept?.deferredBy
}

/** `collectQueueFacts` ranks the lane among the ready lanes of its queue as the store serves them, by (deadline, ticket) (L5). */
export async function collectQueueFacts(store: Store, lane: Lane, grouped: boolean, now: Millis): Promise<QueueFacts> {
  if (lane.due > now) return {}
  const before = (other: Lane): boolean =>
    other.id !== lane.id &&
    other.health === lane.health &&
    (!grouped || other.group === lane.group) &&
    (other.due < lane.due || (other.due === lane.due && other.ticket < lane.ticket))
  // By id: lanes change between two pages, so one lane may appear twice.
  const seen = new Set<string>()
  const ahead = new Set<string>()
  const live = new Set<string>()
  let cursor: string | undefined = ''
  for (let pages = 0; pages < MAX_PAGES && cursor !== undefined && seen.size < MAX_LANES; pages++) {
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
    const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow: lane.flow }, cursor, n: PAGE })
    for (const other of page.items) {
      seen.add(other.id)
      if (before(other)) ahead.add(other.id)
      if (other.group === lane.group && other.run !== undefined && isLiveRun(other.run, now)) live.add(other.id)
    }
    cursor = page.next
  }
  return {
    line: lane.health === SUSPECT ? 'suspect' : lane.health === FAILING ? 'failing' : 'healthy',
    group: grouped ? lane.group : undefined,
    position: ahead.size + 1,
    ahead: ahead.size,
    aheadExact: cursor === undefined,
    liveInGroup: live.size,
  }
}
