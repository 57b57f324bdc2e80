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
  /** The newest, in order: at least `rate` of them, or all there are. Older ones that may yet matter lie in pages. */
  readonly slots: readonly Slot[]
  readonly pages: number
  /** Token bucket only: how many tokens it lacks at a moment; slots after it are in `slots`. */
  readonly debt: number
  readonly debtAt: Millis
  /** The last slot given: slots never go back, so that first come is first served. */
  readonly last: Millis
  /** The last moment that was told to somebody whose slot was too far away (M6). */
  readonly promised: Millis
  readonly pausedUntil: Millis
  /** `per` is stretched by this factor, which was set at `stretchedAt` and comes back (M3). */
  readonly stretch: number
  readonly stretchedAt: Millis
  /** When nothing of this can matter any more. */
  readonly idleAt: Millis
}

/** Older slots, which matter again only if newer ones are given back, and what the bucket lacked before them. */
export type SlotPage = Pick<LimitState, 'slots' | 'debt' | 'debtAt'>

export const FRESH_LIMIT: LimitState = {
  epoch: 1,
  slots: [],
  pages: 0,
  debt: 0,
  debtAt: 0,
  last: 0,
  promised: 0,
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
/** So many slots at least are at hand, so that a page is turned once for many calls. */
const LEAST_AT_HAND = 64
/** Nobody is told to come later than this behind the first free slot: so much is lost if those before do not come. */
const PROMISES_AHEAD = 60 * MINUTE
/** A pause may be ended before its time: who loses nothing by it asks again this soon. */
const ASKS_AGAIN_IN_PAUSE = MINUTE
/** Whoever was told a moment is there this soon after it: a process that hears nothing looks once a second. */
const COMES_WITHIN = 1_000

/** How old a slot may be when it is used, and how much longer than `per` the window is, so that it still holds. */
export function slack(per: Millis): Millis {
  return Math.min(100, per / 10)
}

/** A cost that can never be granted: above the rate, or above the bucket (M5). */
export function tooCostly(numbers: LimitNumbers): boolean {
  return numbers.cost > (numbers.burst > 0 ? numbers.burst : numbers.rate)
}

export function stretchAt(state: Pick<LimitState, 'stretch' | 'stretchedAt'>, now: Millis): number {
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
  let free = numbers.rate - numbers.cost
  const full = state.slots.findLast((slot) => (free -= slot.count) < 0)
  return full === undefined ? floor : Math.max(floor, later(full.at, reachOf(numbers, stretchAt(state, floor))))
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
  const promised = wasMissed(state, numbers, now) ? 0 : state.promised
  if (numbers.burst > 0) {
    const slots = [...state.slots, { at, count: numbers.cost }]
    const owed = owedAfter(state, numbers, slots)
    const idleAt = Math.max(state.idleAt, later(at, owed.debt * perToken(state, numbers, at)))
    const past = slots.filter((slot) => slot.at < now - slack(numbers.per))
    const left = { ...owedAfter(state, numbers, past), slots: slots.slice(past.length) }
    return { ...state, ...left, last: at, promised, idleAt, pages: past.length > 0 ? 0 : state.pages }
  }
  const kept = needed(state, numbers, now)
  const pages = kept.length < state.slots.length ? 0 : state.pages
  const idleAt = Math.max(state.idleAt, later(at, reachOf(numbers, STRETCH_ON_PAUSE)))
  return { ...state, slots: logged(kept, numbers, at), pages, last: at, promised, idleAt }
}

/** Slots out of reach, and those before the newest `rate` that can no longer be given back, never matter again. */
function needed(state: LimitState, numbers: LimitNumbers, now: Millis): readonly Slot[] {
  const { slots } = state
  const outOfReach = horizon(state, numbers, now)
  let held = 0
  let from = slots.length
  while (from > 0 && held < numbers.rate) {
    const slot = slots[from - 1]
    if (slot === undefined || slot.at < outOfReach) break
    if (slot.at < now - slack(numbers.per)) held += slot.count
    from--
  }
  return slots.slice(from)
}

/** What lies before it is out of reach. */
export function horizon(state: LimitState, numbers: LimitNumbers, now: Millis): Millis {
  return now - reachOf(numbers, stretchAt(state, now))
}

/** Whether the slots at hand are too few to say what comes next. */
export function lacksPage(state: LimitState, numbers: LimitNumbers): boolean {
  if (state.pages === 0 || numbers.burst > 0) return false
  let lacking = numbers.rate
  return state.slots.findLast((slot) => (lacking -= slot.count) <= 0) === undefined
}

/** The slots at hand are too many: the older half of them goes into a page. */
export function layAside(
  state: LimitState,
  numbers: LimitNumbers,
): { readonly state: LimitState; readonly page: SlotPage } | undefined {
  const { slots, debt, debtAt } = state
  if (slots.length < 2 * LEAST_AT_HAND) return undefined
  let lacking = numbers.burst > 0 ? 0 : numbers.rate
  const first = slots.findLastIndex((slot) => (lacking -= slot.count) <= 0)
  const from = Math.min(first, slots.length - LEAST_AT_HAND)
  if (from < slots.length / 2) return undefined
  const older = slots.slice(0, from)
  const left = numbers.burst > 0 ? owedAfter(state, numbers, older) : { debt, debtAt }
  return {
    state: { ...state, ...left, slots: slots.slice(from), pages: state.pages + 1 },
    page: { slots: older, debt, debtAt },
  }
}

/** The last page is at hand again. Undefined: it was out of reach, and so are those before it. */
export function turnBack(state: LimitState, page: SlotPage | undefined): LimitState {
  if (page === undefined) return { ...state, pages: 0 }
  return { ...state, ...page, slots: [...page.slots, ...state.slots], pages: state.pages - 1 }
}

/**
 * When somebody whose slot is too far away is to come: one after the other, as the slots do, and in a long pause as if it ended
 * in a minute. Nothing is kept for them, and whoever finds a slot free gets it.
 */
export function promise(state: LimitState, numbers: LimitNumbers, now: Millis): Millis {
  const soon = later(now, ASKS_AGAIN_IN_PAUSE)
  const first = state.pausedUntil > soon ? soon : earliest(state, numbers, now)
  const next = state.promised > now ? state.promised + apart(state, numbers, first) : first
  return Math.min(Math.max(first, next), first + PROMISES_AHEAD)
}

/** How long the limit is busy with such a call. */
function apart(state: LimitState, numbers: LimitNumbers, at: Millis): Millis {
  if (numbers.burst > 0) return numbers.cost * perToken(state, numbers, at)
  return (numbers.cost * reachOf(numbers, stretchAt(state, at))) / numbers.rate
}

/** A slot was free so long that whoever was promised one would have taken it: they do not come, and hold up nobody. */
function wasMissed(state: LimitState, numbers: LimitNumbers, now: Millis): boolean {
  if (state.promised <= now) return false
  return now - earliest(state, numbers, 0) > Math.max(COMES_WITHIN, apart(state, numbers, now))
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

/** Where the slot is among those at hand; -1: in a page, or no longer known. */
function indexOf(state: LimitState, numbers: LimitNumbers, at: Millis): number {
  const entry = numbers.burst > 0 ? at : entryAt(numbers, at)
  return state.slots.findLastIndex((slot) => slot.at === entry && slot.count >= numbers.cost)
}

export function isAtHand(state: LimitState, numbers: LimitNumbers, at: Millis): boolean {
  return indexOf(state, numbers, at) >= 0
}

/** A slot that nobody used is taken out again. `last` is then the last of those that are left. */
export function giveBack(state: LimitState, numbers: LimitNumbers, at: Millis, last: Millis): LimitState {
  const index = indexOf(state, numbers, at)
  const slot = state.slots[index]
  if (slot === undefined) return { ...state, last }
  const count = slot.count - numbers.cost
  const slots = count > 0 ? state.slots.with(index, { at: slot.at, count }) : state.slots.toSpliced(index, 1)
  return { ...state, slots, last }
}

/** Nothing is handed out until the pause ends; then `per` is twice as long and comes back (M3). */
export function pause(state: LimitState, duration: Millis, now: Millis, slow: boolean): LimitState {
  const pausedUntil = Math.max(state.pausedUntil, later(now, duration))
  const idleAt = Math.max(state.idleAt, later(pausedUntil, STRETCH_BACK))
  const raised = { ...state, epoch: state.epoch + 1, pausedUntil, promised: 0, idleAt }
  return slow ? { ...raised, stretch: STRETCH_ON_PAUSE, stretchedAt: pausedUntil } : raised
}

/**
 * The pause is over, and what was used by a clock that was ahead counts as used now. That it was used later than that is
 * impossible: the window holds, and nobody waits until the clock is there again.
 */
export function resume(state: LimitState, now: Millis): LimitState {
  const past = state.slots.filter((slot) => slot.at <= now)
  const ahead = state.slots.slice(past.length).reduce((sum, slot) => sum + slot.count, 0)
  const slots = ahead === 0 ? past : [...past, { at: now, count: ahead }]
  const used = { slots, debtAt: Math.min(state.debtAt, now), last: Math.min(state.last, now) }
  return { ...state, ...used, epoch: state.epoch + 1, pausedUntil: 0, promised: 0, stretch: 1, stretchedAt: 0 }
}

/** What the other side says was used already counts as used now. */
export function observe(state: LimitState, numbers: LimitNumbers, used: number, now: Millis): LimitState {
  return charge(state, { ...numbers, cost: unknownOf(state, numbers, used, now) }, now)
}

/** How much of it we did not know of. Slots that are still to come the other side cannot have seen. */
export function unknownOf(state: LimitState, numbers: LimitNumbers, used: number, now: Millis): number {
  return numbers.burst > 0 ? tokensTooMany(state, numbers, used, now) : unknownCalls(state, numbers, used, now)
}

/** Others used so much. What was given before is void: it is to come behind this (M2). */
export function charge(state: LimitState, numbers: LimitNumbers, now: Millis): LimitState {
  if (numbers.cost <= 0) return state
  return { ...take(state, numbers, Math.max(now, state.last), now), epoch: state.epoch + 1 }
}

function unknownCalls(state: LimitState, numbers: LimitNumbers, used: number, now: Millis): number {
  const upto = entryAt(numbers, now)
  const known = state.slots.filter((slot) => slot.at > now - numbers.per && slot.at <= upto)
  return Math.min(used, numbers.rate) - known.reduce((sum, slot) => sum + slot.count, 0)
}

/** A bucket does not know when its calls were: it holds no more tokens than the other side will still take calls. */
function tokensTooMany(state: LimitState, numbers: LimitNumbers, used: number, now: Millis): number {
  if (used <= 0) return 0
  const past = state.slots.filter((slot) => slot.at <= now)
  const { debt, debtAt } = owedAfter(state, numbers, past)
  const lacks = Math.max(0, debt - Math.max(0, now - debtAt) / perToken(state, numbers, now))
  return numbers.burst - lacks - Math.max(0, numbers.rate - used)
}
