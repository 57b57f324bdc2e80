// A limit is a rate that flows and processes share. It gives out slots: times at which a call may be made (M1 to M5). All functions
// are pure; a store keeps the state in one row.
import { addDelay, type Millis } from '../clock.ts'

export interface LimitParameters {
  readonly rate: number
  readonly per: Millis
  /** 0: the exact window of M1. Above 0: a token bucket of this capacity. */
  readonly burst: number
  readonly cost: number
}

/** `SlotEntry`: `count` calls were given the time `at`. */
interface SlotEntry {
  readonly at: Millis
  readonly count: number
}

export interface LimitState {
  /** Every pause raises it. A reservation of an older epoch is void (M2). */
  readonly epoch: number
  /** The newest slots in order: at least `rate` of them, or all. Older slots that may still matter are in pages. */
  readonly slots: readonly SlotEntry[]
  readonly pages: number
  /** Token bucket only: how many tokens are missing at `debtAt`. Later slots are in `slots`. */
  readonly debt: number
  readonly debtAt: Millis
  /** The last slot given. Slot times never decrease, so calls are first come, first served. */
  readonly last: Millis
  /** The last time promised to a caller whose slot was too far away (M6). */
  readonly promised: Millis
  readonly pausedUntil: Millis
  /** The factor on `per`, set at `stretchedAt`. It returns to 1 over time (M3). */
  readonly stretch: number
  readonly stretchedAt: Millis
  /** The time after which this state no longer matters. */
  readonly idleAt: Millis
}

/** `SlotPage` holds older slots, which matter again only if newer ones are returned, and the debt of the bucket before them. */
export type SlotPage = Pick<LimitState, 'slots' | 'debt' | 'debtAt'>

export const INITIAL_LIMIT_STATE: LimitState = {
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
const STRETCH_DECAY_PER_MINUTE = 0.9
const MINUTE = 60_000
/** After this time, a stretch is back to 1. */
const STRETCH_RECOVERY = 10 * MINUTE
/** The slot log has at most about this many entries per window. At higher rates, slot times are rounded up and merged. */
const LOG_RESOLUTION = 1_000
/** At least so many slots stay loaded, so that one page read serves many calls. */
const MIN_LOADED_SLOTS = 64
/** No promised time is later than this after the first free slot. It bounds the loss if the earlier callers do not come. */
const MAX_PROMISE_AHEAD = 60 * MINUTE
/** A pause may be ended early. A caller that can ask at no cost asks again this soon. */
const RETRY_DURING_PAUSE = MINUTE
/** A caller comes at most this long after its promised time: a process without wake-ups polls once a second. */
const PROMISE_GRACE = 1_000

/** `computeSlack` returns how old a slot may be when it is used. The window is longer than `per` by as much. */
export function computeSlack(per: Millis): Millis {
  return Math.min(100, per / 10)
}

/** `isTooCostly` returns whether a cost can never be granted: it is above the rate, or above the bucket (M5). */
export function isTooCostly(numbers: LimitParameters): boolean {
  return numbers.cost > (numbers.burst > 0 ? numbers.burst : numbers.rate)
}

export function computeStretch(state: Pick<LimitState, 'stretch' | 'stretchedAt'>, now: Millis): number {
  const minutes = Math.max(0, now - state.stretchedAt) / MINUTE
  return Math.max(1, state.stretch * STRETCH_DECAY_PER_MINUTE ** minutes)
}

/** `findEarliestSlot` returns the first time at which the call may be made. */
export function findEarliestSlot(state: LimitState, numbers: LimitParameters, now: Millis): Millis {
  const floor = Math.max(now, state.pausedUntil, state.last)
  return numbers.burst > 0 ? findSlotInBucket(state, numbers, floor) : findSlotInWindow(state, numbers, floor)
}

function computeWindowLength(numbers: LimitParameters, stretch: number): Millis {
  return numbers.per * stretch + computeSlack(numbers.per)
}

/** The n-th slot lies at least `per` + slack after the (n − rate)-th. */
function findSlotInWindow(state: LimitState, numbers: LimitParameters, floor: Millis): Millis {
  let free = numbers.rate - numbers.cost
  const full = state.slots.findLast((slot) => (free -= slot.count) < 0)
  return full === undefined
    ? floor
    : Math.max(floor, addDelay(full.at, computeWindowLength(numbers, computeStretch(state, floor))))
}

/** Returns the first time at which enough tokens are in the bucket. */
function findSlotInBucket(state: LimitState, numbers: LimitParameters, floor: Millis): Millis {
  const owed = computeDebt(state, numbers, state.slots)
  const each = computeTokenInterval(state, numbers, floor)
  return Math.max(floor, addDelay(owed.debtAt, Math.max(0, owed.debt - (numbers.burst - numbers.cost)) * each))
}

/** Returns the debt of the bucket after these slots are used, one after the other. Future slots may still be returned. */
function computeDebt(
  state: LimitState,
  numbers: LimitParameters,
  slots: readonly SlotEntry[],
): { debt: number; debtAt: Millis } {
  let { debt, debtAt } = state
  for (const slot of slots) {
    debt = Math.max(0, debt - (slot.at - debtAt) / computeTokenInterval(state, numbers, slot.at)) + slot.count
    debtAt = slot.at
  }
  return { debt, debtAt }
}

function computeTokenInterval(state: LimitState, numbers: LimitParameters, at: Millis): Millis {
  return (numbers.per * computeStretch(state, at)) / numbers.rate
}

/** `takeSlot` records that the slot `at` is given. */
export function takeSlot(state: LimitState, numbers: LimitParameters, at: Millis, now: Millis): LimitState {
  const promised = isPromiseMissed(state, numbers, now) ? 0 : state.promised
  if (numbers.burst > 0) {
    const slots = [...state.slots, { at, count: numbers.cost }]
    const owed = computeDebt(state, numbers, slots)
    const idleAt = Math.max(state.idleAt, addDelay(at, owed.debt * computeTokenInterval(state, numbers, at)))
    const past = slots.filter((slot) => slot.at < now - computeSlack(numbers.per))
    const left = { ...computeDebt(state, numbers, past), slots: slots.slice(past.length) }
    return { ...state, ...left, last: at, promised, idleAt, pages: past.length > 0 ? 0 : state.pages }
  }
  const kept = pruneSlots(state, numbers, now)
  const pages = kept.length < state.slots.length ? 0 : state.pages
  const idleAt = Math.max(state.idleAt, addDelay(at, computeWindowLength(numbers, STRETCH_ON_PAUSE)))
  return { ...state, slots: appendSlot(kept, numbers, at), pages, last: at, promised, idleAt }
}

/** Removes slots before the horizon, and those before the newest `rate` slots that can no longer be returned. */
function pruneSlots(state: LimitState, numbers: LimitParameters, now: Millis): readonly SlotEntry[] {
  const { slots } = state
  const outOfReach = computeHorizon(state, numbers, now)
  let held = 0
  let from = slots.length
  while (from > 0 && held < numbers.rate) {
    const slot = slots[from - 1]
    if (slot === undefined || slot.at < outOfReach) break
    if (slot.at < now - computeSlack(numbers.per)) held += slot.count
    from--
  }
  return slots.slice(from)
}

/** `computeHorizon` returns the time before which slots no longer matter. */
export function computeHorizon(state: LimitState, numbers: LimitParameters, now: Millis): Millis {
  return now - computeWindowLength(numbers, computeStretch(state, now))
}

/** `needsSlotPage` returns whether too few slots are loaded to compute the next one. */
export function needsSlotPage(state: LimitState, numbers: LimitParameters): boolean {
  if (state.pages === 0 || numbers.burst > 0) return false
  let lacking = numbers.rate
  return state.slots.findLast((slot) => (lacking -= slot.count) <= 0) === undefined
}

/** `moveSlotsToPage` moves the older half of the slots to a page if too many are loaded. */
export function moveSlotsToPage(
  state: LimitState,
  numbers: LimitParameters,
): { readonly state: LimitState; readonly page: SlotPage } | undefined {
  const { slots, debt, debtAt } = state
  if (slots.length < 2 * MIN_LOADED_SLOTS) return undefined
  let lacking = numbers.burst > 0 ? 0 : numbers.rate
  const first = slots.findLastIndex((slot) => (lacking -= slot.count) <= 0)
  const from = Math.min(first, slots.length - MIN_LOADED_SLOTS)
  if (from < slots.length / 2) return undefined
  const older = slots.slice(0, from)
  const left = numbers.burst > 0 ? computeDebt(state, numbers, older) : { debt, debtAt }
  return {
    state: { ...state, ...left, slots: slots.slice(from), pages: state.pages + 1 },
    page: { slots: older, debt, debtAt },
  }
}

/** `restoreSlotPage` loads the last page again. Undefined: the page was removed, and so were all pages before it. */
export function restoreSlotPage(state: LimitState, page: SlotPage | undefined): LimitState {
  if (page === undefined) return { ...state, pages: 0 }
  return { ...state, ...page, slots: [...page.slots, ...state.slots], pages: state.pages - 1 }
}

/**
 * `promiseRetryTime` returns when a caller whose slot is too far away is to ask again: one caller after the other, at the pace of
 * the slots. In a long pause, it assumes that the pause ends in a minute. No slot is kept for these callers: any caller that finds
 * a free slot gets it.
 */
export function promiseRetryTime(state: LimitState, numbers: LimitParameters, now: Millis): Millis {
  const soon = addDelay(now, RETRY_DURING_PAUSE)
  const first = state.pausedUntil > soon ? soon : findEarliestSlot(state, numbers, now)
  const next = state.promised > now ? state.promised + computeSlotSpacing(state, numbers, first) : first
  return Math.min(Math.max(first, next), first + MAX_PROMISE_AHEAD)
}

/** Returns how long the limit is busy with one such call. */
function computeSlotSpacing(state: LimitState, numbers: LimitParameters, at: Millis): Millis {
  if (numbers.burst > 0) return numbers.cost * computeTokenInterval(state, numbers, at)
  return (numbers.cost * computeWindowLength(numbers, computeStretch(state, at))) / numbers.rate
}

/** Returns whether a slot was free for so long that the promised caller does not come. It must not delay others. */
function isPromiseMissed(state: LimitState, numbers: LimitParameters, now: Millis): boolean {
  if (state.promised <= now) return false
  return now - findEarliestSlot(state, numbers, 0) > Math.max(PROMISE_GRACE, computeSlotSpacing(state, numbers, now))
}

function appendSlot(slots: readonly SlotEntry[], numbers: LimitParameters, at: Millis): readonly SlotEntry[] {
  const entry = roundSlotTime(numbers, at)
  const newest = slots.at(-1)
  if (newest !== undefined && newest.at >= entry) {
    return [...slots.slice(0, -1), { at: newest.at, count: newest.count + numbers.cost }]
  }
  return [...slots, { at: entry, count: numbers.cost }]
}

/** Slot times are rounded up, never down: a later entry only makes other callers wait longer. */
function roundSlotTime(numbers: LimitParameters, at: Millis): Millis {
  const grain = numbers.rate > LOG_RESOLUTION ? Math.max(1, Math.floor(numbers.per / LOG_RESOLUTION)) : 1
  return Math.ceil(at / grain) * grain
}

/** Returns the index of a loaded slot; -1: it is in a page, or unknown. */
function findSlotIndex(state: LimitState, numbers: LimitParameters, at: Millis): number {
  const entry = numbers.burst > 0 ? at : roundSlotTime(numbers, at)
  return state.slots.findLastIndex((slot) => slot.at === entry && slot.count >= numbers.cost)
}

export function isSlotLoaded(state: LimitState, numbers: LimitParameters, at: Millis): boolean {
  return findSlotIndex(state, numbers, at) >= 0
}

/** `returnSlot` removes an unused slot. `last` is the last of the remaining slots. */
export function returnSlot(state: LimitState, numbers: LimitParameters, at: Millis, last: Millis): LimitState {
  const index = findSlotIndex(state, numbers, at)
  const slot = state.slots[index]
  if (slot === undefined) return { ...state, last }
  const count = slot.count - numbers.cost
  const slots = count > 0 ? state.slots.with(index, { at: slot.at, count }) : state.slots.toSpliced(index, 1)
  return { ...state, slots, last }
}

/** `pauseLimit` gives out no slot until the pause ends. With `slow`, `per` is doubled afterwards and then recovers (M3). */
export function pauseLimit(state: LimitState, duration: Millis, now: Millis, slow: boolean): LimitState {
  const pausedUntil = Math.max(state.pausedUntil, addDelay(now, duration))
  const idleAt = Math.max(state.idleAt, addDelay(pausedUntil, STRETCH_RECOVERY))
  const raised = { ...state, epoch: state.epoch + 1, pausedUntil, promised: 0, idleAt }
  return slow ? { ...raised, stretch: STRETCH_ON_PAUSE, stretchedAt: pausedUntil } : raised
}

/**
 * `resumeLimit` ends a pause. Slots that were used by a clock that was ahead count as used now. They cannot have been used later
 * than now, so the window still holds, and no caller waits until the clock reaches that time again.
 */
export function resumeLimit(state: LimitState, now: Millis): LimitState {
  const past = state.slots.filter((slot) => slot.at <= now)
  const ahead = state.slots.slice(past.length).reduce((sum, slot) => sum + slot.count, 0)
  const slots = ahead === 0 ? past : [...past, { at: now, count: ahead }]
  const used = { slots, debtAt: Math.min(state.debtAt, now), last: Math.min(state.last, now) }
  return { ...state, ...used, epoch: state.epoch + 1, pausedUntil: 0, promised: 0, stretch: 1, stretchedAt: 0 }
}

/** `computeUnknownUsage` returns how much of the reported usage is not ours. The report cannot include future slots. */
export function computeUnknownUsage(state: LimitState, numbers: LimitParameters, used: number, now: Millis): number {
  return numbers.burst > 0 ? countExcessTokens(state, numbers, used, now) : countUnknownCalls(state, numbers, used, now)
}

/** `chargeUsage` records usage by others. Earlier reservations become void and move behind it (M2). */
export function chargeUsage(state: LimitState, numbers: LimitParameters, now: Millis): LimitState {
  if (numbers.cost <= 0) return state
  return { ...takeSlot(state, numbers, Math.max(now, state.last), now), epoch: state.epoch + 1 }
}

function countUnknownCalls(state: LimitState, numbers: LimitParameters, used: number, now: Millis): number {
  const upto = roundSlotTime(numbers, now)
  const known = state.slots.filter((slot) => slot.at > now - numbers.per && slot.at <= upto)
  return Math.min(used, numbers.rate) - known.reduce((sum, slot) => sum + slot.count, 0)
}

/** A bucket does not know when its calls were made. It keeps no more tokens than calls that the other side still accepts. */
function countExcessTokens(state: LimitState, numbers: LimitParameters, used: number, now: Millis): number {
  if (used <= 0) return 0
  const past = state.slots.filter((slot) => slot.at <= now)
  const { debt, debtAt } = computeDebt(state, numbers, past)
  const lacks = Math.max(0, debt - Math.max(0, now - debtAt) / computeTokenInterval(state, numbers, now))
  return numbers.burst - lacks - Math.max(0, numbers.rate - used)
}
