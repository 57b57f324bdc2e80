// Transition 2 of 4: a ready lane gets its turn. A lapsed run comes back whole; otherwise a new run takes what waits
// (L1, L7, L8, L12, L16). Which lane is next is the order of the index; this says what its turn is.
import { later, NEVER, type Millis } from '../clock.ts'
import { arm, type Lane, type Moment, type Rank, type Run } from './lane.ts'

/** The lapse that makes a run a dead letter `crashed`. */
export const LAPSES_MAX = 4
/** Every ninth turn of a lane goes to replays while they wait. */
const LIVE_TURNS_BEFORE_REPLAY = 8

export interface ClaimCaps {
  readonly maxEvents: number
  readonly maxBytes: number
  readonly lease: Millis
  readonly take: 'all' | 'first' | 'last'
}

/** One turn that is being given out. */
export interface Turn extends Moment {
  readonly token: number
  readonly caps: ClaimCaps
}

/** What a due lane's turn is. */
export type Next =
  | { readonly kind: 'crashed'; readonly run: Run }
  | { readonly kind: 'resume'; readonly run: Run }
  | { readonly kind: 'letter' }
  | { readonly kind: 'take'; readonly rank: Rank }

export function nextTurn(lane: Lane, now: Millis): Next {
  const run = lane.run
  if (run !== undefined) {
    if (run.state !== 'running') return { kind: 'resume', run }
    const lapsed: Run = { ...run, lapses: run.lapses + 1, first: false, cancel: false }
    return lapsed.lapses >= LAPSES_MAX ? { kind: 'crashed', run: lapsed } : { kind: 'resume', run: lapsed }
  }
  if (lane.letters > 0) return { kind: 'letter' }
  const replayReady = lane.replays > 0 && lane.replayDue <= now
  const liveReady = lane.waiting > 0 && lane.window <= now
  const replayTurn = replayReady && (!liveReady || lane.passed >= LIVE_TURNS_BEFORE_REPLAY)
  return { kind: 'take', rank: replayTurn ? 1 : 0 }
}

/** The same run, the same events, a new token. */
export function resume(lane: Lane, run: Run, turn: Turn): Lane {
  const live: Run = { ...run, state: 'running', token: turn.token, until: later(turn.now, turn.caps.lease) }
  return arm({ ...freed(lane), run: live }, turn.draw, 'anew')
}

export interface WaitingRow {
  readonly pos: number
  readonly size: number
}

/** How many of the rows a run takes: at most the caps, at least one (L7). */
export function cut(rows: readonly WaitingRow[], caps: ClaimCaps): number {
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

export interface Taken {
  readonly rank: Rank
  /** The rows of the run, in order. */
  readonly rows: readonly WaitingRow[]
  /** Rows that `take` passed over: they end as superseded. */
  readonly superseded: readonly WaitingRow[]
}

/** A new run takes these rows. */
export function begin(lane: Lane, id: string, taken: Taken, turn: Turn): Lane {
  const size = taken.rows.reduce((sum, row) => sum + row.size, 0)
  const run: Run = {
    ...newRun(id, turn),
    rank: taken.rank,
    upto: taken.rows.at(-1)?.pos ?? 0,
    events: taken.rows.length,
    bytes: size,
    cap: taken.rank === 0 ? lane.cap : NEVER,
  }
  const gone = taken.rows.length + taken.superseded.length
  const goneBytes = size + taken.superseded.reduce((sum, row) => sum + row.size, 0)
  const next: Lane =
    taken.rank === 0
      ? {
          ...freed(lane),
          waiting: lane.waiting - gone,
          bytes: lane.bytes - goneBytes,
          window: NEVER,
          // Whose cap it was is not known: those left over keep it.
          cap: lane.waiting > gone ? lane.cap : NEVER,
          left: lane.waiting > gone,
          passed: lane.replays > 0 ? lane.passed + 1 : 0,
          run,
        }
      : { ...freed(lane), replays: lane.replays - gone, replayDue: NEVER, passed: 0, run }
  return arm(next, turn.draw, 'anew')
}

export interface QueuedLetter {
  readonly id: string
  readonly parent: string
  readonly events: number
  readonly bytes: number
}

/** A dead letter that was queued by hand runs again under its own id, tries and lapses at zero (L9). */
export function beginLetter(lane: Lane, letter: QueuedLetter, turn: Turn): Lane {
  const run: Run = {
    ...newRun(letter.id, turn),
    parent: letter.parent,
    letter: true,
    events: letter.events,
    bytes: letter.bytes,
  }
  return arm({ ...freed(lane), letters: lane.letters - 1, run }, turn.draw, 'anew')
}

function newRun(id: string, turn: Turn): Run {
  return {
    id,
    parent: '',
    state: 'running',
    token: turn.token,
    until: later(turn.now, turn.caps.lease),
    rank: 0,
    upto: 0,
    letter: false,
    events: 0,
    bytes: 0,
    cap: NEVER,
    started: turn.now,
    tries: 0,
    lapses: 0,
    failed: false,
    first: true,
    cancel: false,
    committed: false,
    purged: false,
    failingSince: 0,
    againSince: 0,
    state64: '',
    attempts: [],
  }
}

/** A hold that kept the lane out until now has ended. */
function freed(lane: Lane): Lane {
  return lane.hold === undefined ? lane : { ...lane, hold: undefined }
}
