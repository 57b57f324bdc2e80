// Transition 1 of 4: an event takes its place in a lane, and the lane its deadline (L3, L4, L6c, L16).
import { later, type Millis } from '../clock.ts'
import { arm, isLive, type Lane, type Moment, type Rank, type Run } from './lane.ts'

/** A window in numbers, as it was computed for one event when it was routed (L2a). */
export interface WindowNumbers {
  readonly quiet: Millis
  readonly max: Millis
  readonly maxEvents: number
  readonly maxBytes: number
  /** 0 to 1: how far `quiet` may be scaled up or down. */
  readonly jitter: number
  readonly leading: boolean
}

export interface Placement extends WindowNumbers {
  readonly rank: Rank
  readonly size: number
  /** Whether this event asks a run in progress to give up (L6c). */
  readonly cancel: boolean
}

/** The event stands at position `lane.tail` of the lane that is answered. */
export function place(lane: Lane, placement: Placement, at: Moment): Lane {
  const placed = placement.rank === 1 ? placeReplay(lane, at.now) : placeLive(lane, placement, at)
  return arm(placed, at.draw, 'if-moved')
}

function placeReplay(lane: Lane, now: Millis): Lane {
  return { ...lane, tail: lane.tail + 1, replays: lane.replays + 1, replayDue: Math.min(lane.replayDue, now) }
}

function placeLive(lane: Lane, placement: Placement, at: Moment): Lane {
  const now = at.now
  const waiting = lane.waiting + 1
  const bytes = lane.bytes + placement.size
  const cap = Math.min(lane.cap, later(now, placement.max))
  const full = waiting >= placement.maxEvents || bytes >= placement.maxBytes
  const passed = lane.waiting > 0 && lane.window <= now
  return {
    ...lane,
    tail: lane.tail + 1,
    waiting,
    bytes,
    cap,
    window: passed ? lane.window : full || leads(lane, placement, now) ? now : windowEnd(lane, placement, cap, at),
    run: lane.run === undefined ? undefined : asked(lane.run, placement, now),
  }
}

function windowEnd(lane: Lane, placement: Placement, cap: Millis, at: Moment): Millis {
  if (placement.jitter === 0 || placement.quiet === Infinity) return Math.min(later(at.now, placement.quiet), cap)
  const factor = 1 + placement.jitter * (2 * chance(lane.id, at.draw()) - 1)
  return Math.min(later(at.now, placement.quiet * factor), cap)
}

/** The first event of a lane that has been still for `quiet` is due at once. */
function leads(lane: Lane, placement: Placement, now: Millis): boolean {
  return (
    placement.leading &&
    lane.waiting === 0 &&
    lane.run === undefined &&
    (lane.ended === 0 || later(lane.ended, placement.quiet) <= now)
  )
}

function asked(run: Run, placement: Placement, now: Millis): Run {
  const may = placement.cancel && cancellable(run, now) && run.cap > now
  return may ? { ...run, cancel: true } : run
}

export function cancellable(run: Run, now: Millis): boolean {
  return isLive(run, now) && run.first && run.rank === 0 && !run.letter && !run.committed && !run.purged
}

/** A number in [0, 1) that is the same for the same lane and ticket. */
function chance(id: string, ticket: number): number {
  let mixed = 0x811c9dc5
  for (const part of [id, String(ticket)]) {
    for (let at = 0; at < part.length; at++) mixed = Math.imul(mixed ^ part.charCodeAt(at), 0x01000193)
  }
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}
