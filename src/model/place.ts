// `placeEvent` is transition 1 of 4: an event enters a lane, and the lane gets its deadline (L3, L4, L6c, L16).
import { addDelay, type Millis } from '../clock.ts'
import { scheduleLane, isLiveRun, type Lane, type TransitionContext, type Rank, type RunState } from './lane.ts'

/** `WindowParameters` is the window that was computed for one event when it was routed (L2a). */
export interface WindowParameters {
  readonly quiet: Millis
  readonly max: Millis
  readonly maxEvents: number
  readonly maxBytes: number
  /** 0 to 1: how far `quiet` may be scaled up or down. */
  readonly jitter: number
  readonly leading: boolean
}

export interface PlacementParameters extends WindowParameters {
  readonly rank: Rank
  readonly size: number
  /** Whether this event asks a run in progress to cancel (L6c). */
  readonly cancel: boolean
}

/** `placeEvent` returns the lane with the event at position `lane.tail`. */
export function placeEvent(lane: Lane, placement: PlacementParameters, context: TransitionContext): Lane {
  const placed = placement.rank === 1 ? placeReplay(lane, context.now) : placeLive(lane, placement, context)
  return scheduleLane(placed, context.draw, 'if-moved')
}

/** `computeCap` returns the time at which the event's own wait ends, regardless of the windows of its neighbours. */
export function computeCap({ max }: WindowParameters, now: Millis): Millis {
  return addDelay(now, max)
}

function placeReplay(lane: Lane, now: Millis): Lane {
  return { ...lane, tail: lane.tail + 1, replays: lane.replays + 1, replayDue: Math.min(lane.replayDue, now) }
}

function placeLive(lane: Lane, placement: PlacementParameters, context: TransitionContext): Lane {
  const now = context.now
  const waiting = lane.waiting + 1
  const bytes = lane.bytes + placement.size
  const cap = Math.min(lane.cap, computeCap(placement, now))
  const full = isWindowFull(placement, waiting, bytes)
  const passed = lane.waiting > 0 && lane.window <= now
  const deadline = (): Millis =>
    full || isLeading(lane, placement, now) ? now : computeDeadline(lane, placement, cap, context)
  return {
    ...lane,
    tail: lane.tail + 1,
    waiting,
    bytes,
    cap,
    window: passed ? lane.window : deadline(),
    run: lane.run === undefined ? undefined : updateRun(lane.run, placement, { waiting, bytes, now }),
  }
}

function computeDeadline(lane: Lane, placement: PlacementParameters, cap: Millis, context: TransitionContext): Millis {
  if (placement.jitter === 0 || placement.quiet === Infinity)
    return Math.min(addDelay(context.now, placement.quiet), cap)
  const factor = 1 + placement.jitter * (2 * hashToUnitInterval(lane.id, context.draw()) - 1)
  return Math.min(addDelay(context.now, placement.quiet * factor), cap)
}

/** The first event of a lane is due at once if no run ended within the last `quiet`. */
function isLeading(lane: Lane, placement: PlacementParameters, now: Millis): boolean {
  return (
    placement.leading &&
    lane.waiting === 0 &&
    lane.run === undefined &&
    (lane.ended === 0 || addDelay(lane.ended, placement.quiet) <= now)
  )
}

function isWindowFull({ maxEvents, maxBytes }: WindowParameters, events: number, bytes: number): boolean {
  return events >= maxEvents || bytes >= maxBytes
}

interface WaitingTotals {
  readonly waiting: number
  readonly bytes: number
  readonly now: Millis
}

/** Applies the event to the run: it may request a cancellation, after which it would wait together with the run's events. */
function updateRun(run: RunState, placement: PlacementParameters, { waiting, bytes, now }: WaitingTotals): RunState {
  if (!isCancellable(run, now)) return run
  const cancel = run.cancel || (placement.cancel && run.cap > now)
  const full = run.full || isWindowFull(placement, waiting + run.events, bytes + run.bytes)
  return cancel === run.cancel && full === run.full ? run : { ...run, cancel, full }
}

export function isCancellable(run: RunState, now: Millis): boolean {
  return isLiveRun(run, now) && run.first && run.rank === 0 && !run.isDeadLetter && !run.committed && !run.purged
}

/** Returns a number in [0, 1) that depends only on the lane and the ticket. */
function hashToUnitInterval(id: string, ticket: number): number {
  let mixed = 0x811c9dc5
  for (const part of [id, String(ticket)]) {
    for (let at = 0; at < part.length; at++) mixed = Math.imul(mixed ^ part.charCodeAt(at), 0x01000193)
  }
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}

/** `Pressure` is the level from 0 to 1 by which an adaptive window of a flow grows (L22). */
export interface Pressure {
  readonly level: number
  readonly at: Millis
  readonly raisedAt: Millis
}

export const NO_PRESSURE: Pressure = { level: 0, at: 0, raisedAt: Number.NEGATIVE_INFINITY }

const HALF_LIFE = 60_000
const STEP = 0.25
const MIN_STEP_INTERVAL = 5_000

export function computePressureLevel(pressure: Pressure, now: Millis): number {
  return pressure.level * 0.5 ** (Math.max(0, now - pressure.at) / HALF_LIFE)
}

/** `raisePressure` adds one step after a 429 or a late first lane. At most one step counts in five seconds. */
export function raisePressure(pressure: Pressure, now: Millis): Pressure {
  if (now - pressure.raisedAt < MIN_STEP_INTERVAL) return pressure
  return { level: Math.min(1, computePressureLevel(pressure, now) + STEP), at: now, raisedAt: now }
}

export function computeAdaptiveQuiet(range: { readonly from: Millis; readonly to: Millis }, level: number): Millis {
  return range.from * (range.to / range.from) ** level
}
