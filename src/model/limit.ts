// A limit is a rate that flows and processes share. It hands out slots: moments at which a call may be made (M1 to M5).
// Pure: the state goes in, the state comes out; a store keeps it in one row.
import { later, type Millis } from '../clock.ts'

export interface LimitNumbers {
  readonly rate: number
  readonly per: Millis
  /** 0: the exact window of M1. Above: a token bucket of this capacity. */
  readonly burst: number
  readonly cost: number
}

/** `count` calls were given the moment `at`. */
interface Slot {
  readonly at: Millis
  readonly count: number
}

export interface LimitState {
  /** Raised by every pause: a reservation of an older epoch is void (M2). */
  readonly epoch: number
  readonly slots: readonly Slot[]
  /** Token bucket only: how many tokens it lacks at a moment; slots after it are in `slots`. */
  readonly debt: number
  readonly debtAt: Millis
  /** The last slot given: slots never go back, so that first come is first served. */
  readonly last: Millis
  readonly pausedUntil: Millis
  /** `per` is stretched by this factor, which was set at `stretchedAt` and comes back (M3). */
  readonly stretch: number
  readonly stretchedAt: Millis
  /** When nothing of this can matter any more. */
  readonly idleAt: Millis
}

export const FRESH_LIMIT: LimitState = {
  epoch: 1,
  slots: [],
  debt: 0,
  debtAt: 0,
  last: 0,
  pausedUntil: 0,
  stretch: 1,
  stretchedAt: 0,
  idleAt: 0,
}

const STRETCH_ON_PAUSE = 2
const STRETCH_KEPT_PER_MINUTE = 0.9
const MINUTE = 60_000
/** By then a stretch is back to 1. */
const STRETCH_BACK = 10 * MINUTE
/** A log of slots never has more than about this many entries: above, moments are rounded up together. */
const LOG_RESOLUTION = 1_000

/** How old a slot may be when it is used, and how much longer than `per` the window is, so that it still holds. */
export function slack(per: Millis): Millis {
  return Math.min(100, per / 10)
}

/** A cost that can never be granted: above the rate, or above the bucket (M5). */
export function tooCostly(numbers: LimitNumbers): boolean {
  return numbers.cost > (numbers.burst > 0 ? numbers.burst : numbers.rate)
}

export function stretchAt(state: LimitState, now: Millis): number {
  const minutes = Math.max(0, now - state.stretchedAt) / MINUTE
  return Math.max(1, state.stretch * STRETCH_KEPT_PER_MINUTE ** minutes)
}

/** The first moment at which the call may be made. */
export function earliest(state: LimitState, numbers: LimitNumbers, now: Millis): Millis {
  const floor = Math.max(now, state.pausedUntil, state.last)
  return numbers.burst > 0 ? fromBucket(state, numbers, floor) : fromWindow(state, numbers, floor)
}

function reachOf(numbers: LimitNumbers, stretch: number): Millis {
  return numbers.per * stretch + slack(numbers.per)
}

/** The n-th slot lies at least `per` + slack after the (n − rate)-th. */
function fromWindow(state: LimitState, numbers: LimitNumbers, floor: Millis): Millis {
  const reach = reachOf(numbers, stretchAt(state, floor))
  let held = state.slots.reduce((sum, slot) => sum + slot.count, 0)
  let at = floor
  for (const slot of state.slots) {
    if (held + numbers.cost <= numbers.rate) break
    held -= slot.count
    at = Math.max(at, later(slot.at, reach))
  }
  return at
}

/** As soon as no more tokens are missing than may be. */
function fromBucket(state: LimitState, numbers: LimitNumbers, floor: Millis): Millis {
  const owed = owedAfter(state, numbers, state.slots)
  const each = perToken(state, numbers, floor)
  return Math.max(floor, later(owed.debtAt, Math.max(0, owed.debt - (numbers.burst - numbers.cost)) * each))
}

/** What the bucket lacks once these slots are used, one after the other. Slots still to come may yet be given back. */
function owedAfter(state: LimitState, numbers: LimitNumbers, slots: readonly Slot[]): { debt: number; debtAt: Millis } {
  let { debt, debtAt } = state
  for (const slot of slots) {
    debt = Math.max(0, debt - (slot.at - debtAt) / perToken(state, numbers, slot.at)) + slot.count
    debtAt = slot.at
  }
  return { debt, debtAt }
}

function perToken(state: LimitState, numbers: LimitNumbers, at: Millis): Millis {
  return (numbers.per * stretchAt(state, at)) / numbers.rate
}

/** The slot `at` is given. */
export function take(state: LimitState, numbers: LimitNumbers, at: Millis, now: Millis): LimitState {
  if (numbers.burst > 0) {
    const slots = [...state.slots, { at, count: numbers.cost }]
    const owed = owedAfter(state, numbers, slots)
    const idleAt = Math.max(state.idleAt, later(at, owed.debt * perToken(state, numbers, at)))
    const past = slots.filter((slot) => slot.at <= now - slack(numbers.per))
    return { ...state, last: at, ...owedAfter(state, numbers, past), slots: slots.slice(past.length), idleAt }
  }
  const slots = logged(needed(state, numbers, now), numbers, at)
  return { ...state, last: at, slots, idleAt: Math.max(state.idleAt, later(at, reachOf(numbers, STRETCH_ON_PAUSE))) }
}

/** Slots out of reach, and those before the newest `rate` that can no longer be given back, never matter again. */
function needed(state: LimitState, numbers: LimitNumbers, now: Millis): readonly Slot[] {
  const { slots } = state
  const horizon = now - reachOf(numbers, stretchAt(state, now))
  let held = 0
  let from = slots.length
  while (from > 0 && held < numbers.rate) {
    const slot = slots[from - 1]
    if (slot === undefined || slot.at < horizon) break
    if (slot.at <= now - slack(numbers.per)) held += slot.count
    from--
  }
  return slots.slice(from)
}

function logged(slots: readonly Slot[], numbers: LimitNumbers, at: Millis): readonly Slot[] {
  const entry = entryAt(numbers, at)
  const newest = slots.at(-1)
  if (newest !== undefined && newest.at >= entry) {
    return [...slots.slice(0, -1), { at: newest.at, count: newest.count + numbers.cost }]
  }
  return [...slots, { at: entry, count: numbers.cost }]
}

/** Rounded up, never down: a later entry only makes others wait longer. */
function entryAt(numbers: LimitNumbers, at: Millis): Millis {
  const grain = numbers.rate > LOG_RESOLUTION ? Math.max(1, Math.floor(numbers.per / LOG_RESOLUTION)) : 1
  return Math.ceil(at / grain) * grain
}

/** A slot that nobody used is taken out again. `last` is then the last of those that are left. */
export function giveBack(state: LimitState, numbers: LimitNumbers, at: Millis, last: Millis): LimitState {
  const entry = numbers.burst > 0 ? at : entryAt(numbers, at)
  const index = state.slots.findLastIndex((slot) => slot.at === entry && slot.count >= numbers.cost)
  const slots = state.slots
    .map((slot, n) => (n === index ? { at: slot.at, count: slot.count - numbers.cost } : slot))
    .filter((slot) => slot.count > 0)
  return { ...state, slots, last }
}

/** Nothing is handed out until the pause ends; then `per` is twice as long and comes back (M3). */
export function pause(state: LimitState, duration: Millis, now: Millis, slow: boolean): LimitState {
  const pausedUntil = Math.max(state.pausedUntil, later(now, duration))
  const idleAt = Math.max(state.idleAt, later(pausedUntil, STRETCH_BACK))
  const raised = { ...state, epoch: state.epoch + 1, pausedUntil, idleAt }
  return slow ? { ...raised, stretch: STRETCH_ON_PAUSE, stretchedAt: pausedUntil } : raised
}

export function resume(state: LimitState): LimitState {
  return { ...state, epoch: state.epoch + 1, pausedUntil: 0, stretch: 1, stretchedAt: 0 }
}

/** What the other side says was used already counts as used now. */
export function observe(state: LimitState, numbers: LimitNumbers, used: number, now: Millis): LimitState {
  const known = state.slots.filter((slot) => slot.at > now - numbers.per).reduce((sum, slot) => sum + slot.count, 0)
  const missing = Math.min(used, numbers.rate) - known
  return missing > 0 && numbers.burst === 0 ? take(state, { ...numbers, cost: missing }, now, now) : state
}
