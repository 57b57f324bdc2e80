// `decideNextClaim` and `beginRun` are transition 2 of 4: a ready lane is claimed. A lapsed run comes back whole; otherwise a new
// run takes waiting events (L1, L7, L8, L12, L16). The index decides which lane is next; this file decides what it runs.
import { addDelay, NEVER, type Millis } from '../clock.ts'
import { scheduleLane, type Lane, type TransitionContext, type Rank, type RunState } from './lane.ts'

/** `LAPSES_MAX` is the lapse that makes a run a dead letter with the reason `crashed`. */
export const LAPSES_MAX = 4
/** Every ninth claim of a lane takes replays while they wait. */
const LIVE_CLAIMS_BEFORE_REPLAY = 8

export interface ClaimCaps {
  readonly maxEvents: number
  readonly maxBytes: number
  readonly lease: Millis
  readonly take: 'all' | 'first' | 'last'
}

export interface ClaimContext extends TransitionContext {
  readonly token: number
  readonly caps: ClaimCaps
}

/** `NextClaim` is what the claim of a due lane runs. */
export type NextClaim =
  | { readonly kind: 'crashed'; readonly run: RunState }
  | { readonly kind: 'resume'; readonly run: RunState }
  | { readonly kind: 'dead-letter' }
  | { readonly kind: 'take'; readonly rank: Rank }

export function decideNextClaim(lane: Lane, now: Millis): NextClaim {
  const run = lane.run
  if (run !== undefined) {
    if (run.state !== 'running') return { kind: 'resume', run }
    const lapsed: RunState = { ...run, lapses: run.lapses + 1, first: false, cancel: false }
    return lapsed.lapses >= LAPSES_MAX ? { kind: 'crashed', run: lapsed } : { kind: 'resume', run: lapsed }
  }
  if (lane.queuedDeadLetters > 0) return { kind: 'dead-letter' }
  const replayReady = lane.replays > 0 && lane.replayDue <= now
  const liveReady = lane.waiting > 0 && lane.window <= now
  const replayTurn = replayReady && (!liveReady || lane.liveClaims >= LIVE_CLAIMS_BEFORE_REPLAY)
  return { kind: 'take', rank: replayTurn ? 1 : 0 }
}

/** `resumeRun` starts the same run again, with the same events and a new token. */
export function resumeRun(lane: Lane, run: RunState, context: ClaimContext): Lane {
  const live: RunState = {
    ...run,
    state: 'running',
    token: context.token,
    until: addDelay(context.now, context.caps.lease),
  }
  return scheduleLane({ ...clearHold(lane), run: live }, context.draw, 'anew')
}

export interface PlacementToTake {
  readonly pos: number
  readonly size: number
  /** The arrival + max of the event. */
  readonly cap: Millis
}

/** `countEventsToTake` returns how many rows a run takes: at most the caps, and at least one (L7). */
export function countEventsToTake(rows: readonly Pick<PlacementToTake, 'size'>[], caps: ClaimCaps): number {
  if (caps.take !== 'all') return 1
  let bytes = 0
  let taken = 0
  for (const row of rows) {
    bytes += row.size
    if (taken > 0 && (taken >= caps.maxEvents || bytes > caps.maxBytes)) break
    taken++
  }
  return taken
}

export interface TakenPlacements {
  readonly rank: Rank
  /** The replay that the rows belong to; '' for live events. */
  readonly replay: string
  /** The rows of the run, in order. */
  readonly rows: readonly PlacementToTake[]
  /** The rows that `take` passed over. They end as superseded. */
  readonly superseded: readonly PlacementToTake[]
}

/** `beginRun` starts a new run with these rows. */
export function beginRun(lane: Lane, id: string, taken: TakenPlacements, context: ClaimContext): Lane {
  const size = taken.rows.reduce((sum, row) => sum + row.size, 0)
  const run: RunState = {
    ...createRun(id, context),
    rank: taken.rank,
    replay: taken.replay,
    upto: taken.rows.at(-1)?.pos ?? 0,
    events: taken.rows.length,
    bytes: size,
    cap: taken.rank === 0 ? computeRunCap(taken.rows, lane, context.caps) : NEVER,
  }
  const gone = taken.rows.length + taken.superseded.length
  const goneBytes = size + taken.superseded.reduce((sum, row) => sum + row.size, 0)
  const next: Lane =
    taken.rank === 0
      ? {
          ...clearHold(lane),
          waiting: lane.waiting - gone,
          bytes: lane.bytes - goneBytes,
          window: NEVER,
          // Events left over are due when the run ends. The next window belongs to later events.
          cap: NEVER,
          hasRemaining: lane.waiting > gone,
          liveClaims: lane.replays > 0 ? lane.liveClaims + 1 : 0,
          run,
        }
      : { ...clearHold(lane), replays: lane.replays - gone, replayDue: NEVER, liveClaims: 0, run }
  return scheduleLane(next, context.draw, 'anew')
}

/** With `take`, the run keeps the cap of all events that waited. Otherwise each cancellation would restart the wait. */
function computeRunCap(rows: readonly PlacementToTake[], lane: Lane, { take }: ClaimCaps): Millis {
  return take === 'all' ? rows.reduce((least, row) => Math.min(least, row.cap), NEVER) : lane.cap
}

export interface QueuedDeadLetter {
  readonly id: string
  readonly parent: string
  readonly replay: string
  readonly events: number
  readonly bytes: number
}

/** `beginDeadLetterRun` starts a queued dead letter under its own id, with tries and lapses at zero (L9). */
export function beginDeadLetterRun(lane: Lane, deadLetter: QueuedDeadLetter, context: ClaimContext): Lane {
  const run: RunState = {
    ...createRun(deadLetter.id, context),
    parent: deadLetter.parent,
    isDeadLetter: true,
    replay: deadLetter.replay,
    events: deadLetter.events,
    bytes: deadLetter.bytes,
  }
  return scheduleLane({ ...clearHold(lane), queuedDeadLetters: lane.queuedDeadLetters - 1, run }, context.draw, 'anew')
}

function createRun(id: string, context: ClaimContext): RunState {
  return {
    id,
    parent: '',
    state: 'running',
    token: context.token,
    until: addDelay(context.now, context.caps.lease),
    rank: 0,
    upto: 0,
    isDeadLetter: false,
    replay: '',
    events: 0,
    bytes: 0,
    cap: NEVER,
    started: context.now,
    tries: 0,
    lapses: 0,
    failed: false,
    first: true,
    cancel: false,
    full: false,
    committed: false,
    purged: false,
    failingSince: 0,
    snoozedSince: 0,
    state64: '',
    attempts: [],
  }
}

/** Removes the hold, which has ended. */
function clearHold(lane: Lane): Lane {
  return lane.hold === undefined ? lane : { ...lane, hold: undefined }
}
