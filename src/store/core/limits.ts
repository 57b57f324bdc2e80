// `reserve` and `regulate` apply the rules of shared limits: slots are given in the order of the requests (M1 to M7).
import { NEVER, type Millis } from '../../clock.ts'
import {
  chargeUsage,
  findEarliestSlot,
  returnSlot,
  pauseLimit,
  promiseRetryTime,
  resumeLimit,
  computeSlack,
  takeSlot,
  isTooCostly,
  computeUnknownUsage,
  type LimitState,
  INITIAL_LIMIT_STATE,
  computeHorizon,
  isSlotLoaded,
  needsSlotPage,
  moveSlotsToPage,
  restoreSlotPage,
  type LimitParameters,
} from '../../model/limit.ts'
import { computePressureLevel, NO_PRESSURE, raisePressure } from '../../model/place.ts'
import type {
  LeasePermitsCall,
  UpdatePressureCall,
  RegulateCall,
  RegulateReply,
  Reservation,
  ReserveCall,
} from '../contract/index.ts'
import type { ReplyBody, TicketRow } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

type ReserveRequest = ReserveCall['requests'][number]
type SlotRequest = Omit<ReserveRequest, 'maxWait'>
type UsageObservation = Extract<RegulateCall['act'], { kind: 'observe' }>

export function reserve(work: CommitContext, call: ReserveCall): readonly Reservation[] {
  const limits = new LimitSession(work)
  const results = call.requests.map((request) => reserveOne(work, limits, request))
  limits.save()
  return results
}

function reserveOne(work: CommitContext, limits: LimitSession, request: ReserveRequest): Reservation {
  const costly = request.limits.find((limit) => isTooCostly(limit))
  if (costly !== undefined) return { kind: 'refused', limit: costly.name }
  const { limits: table } = work.tables
  const known = table.getTicket(request.ticket)
  const isNew = known === undefined || isTicketExpired(known, work)
  const away = isNew ? findCommonSlot(work, limits, request) - work.now : 0
  if (away > request.maxWait) return { kind: 'far', ...promiseRetry(work, limits, request) }
  if (isNew && known !== undefined) table.removeTicket(known.ticket)
  const row = isNew ? giveSlot(work, limits, { ...request, order: work.draw() }) : known
  const isUsed = row.used || row.at <= work.now
  if (isNew || isUsed !== row.used) table.putTicket({ ...row, used: isUsed })
  const wait = Math.max(0, row.at - work.now)
  const age = Math.max(0, work.now - row.at)
  const epoch = request.limits.reduce((sum, limit) => sum + limits.get(limit.name).epoch, 0)
  return { kind: 'granted', wait, freshFor: computeTicketSlack(row) - age, epoch }
}

/** A late slot must not be used: the call could fall into another window. */
function isTicketExpired(row: TicketRow, work: CommitContext): boolean {
  return work.now - row.at > computeTicketSlack(row)
}

function computeTicketSlack(row: TicketRow): number {
  return Math.min(...row.limits.map((limit) => computeSlack(limit.per)))
}

/** Returns the earliest time at which all limits of the request have a free slot. */
function findCommonSlot(work: CommitContext, limits: LimitSession, wanted: SlotRequest): Millis {
  return Math.max(
    work.now,
    ...wanted.limits.map((limit) => findEarliestSlot(limits.loadForNextSlot(limit), limit, work.now)),
  )
}

/** Returns when to ask again. Each limit that causes the wait remembers the promised time, so the next caller gets a later one. */
function promiseRetry(
  work: CommitContext,
  limits: LimitSession,
  request: ReserveRequest,
): { readonly wait: Millis; readonly recheckAfter: Millis } {
  let [slotAt, recheckAt] = [0, 0]
  for (const limit of request.limits) {
    const state = limits.loadForNextSlot(limit)
    const first = findEarliestSlot(state, limit, work.now)
    if (first - work.now <= request.maxWait) continue
    const promised = promiseRetryTime(state, limit, work.now)
    limits.put(limit.name, { ...state, promised })
    slotAt = Math.max(slotAt, promised, first)
    recheckAt = Math.max(recheckAt, promised)
  }
  return { wait: Math.ceil(slotAt) - work.now, recheckAfter: Math.ceil(recheckAt) - work.now }
}

/** Gives the ticket a slot in all its limits. The caller decides whether the slot is used already. */
function giveSlot(
  work: CommitContext,
  limits: LimitSession,
  wanted: SlotRequest & { readonly order: number },
): TicketRow {
  const at = findCommonSlot(work, limits, wanted)
  for (const limit of wanted.limits)
    limits.putWithPaging(limit, takeSlot(limits.loadForNextSlot(limit), limit, at, work.now))
  return { ticket: wanted.ticket, order: wanted.order, at, used: false, limits: wanted.limits }
}

export function regulate(work: CommitContext, call: RegulateCall): ReplyBody<RegulateReply> {
  const { act, name } = call
  let released = false
  switch (act.kind) {
    case 'pause':
      changeLimit(work, name, (limits) => pauseLimit(limits.get(name), act.for, work.now, act.slow))
      break
    case 'resume':
      changeLimit(work, name, (limits) => resumeLimit(limits.loadSince(name, work.now), work.now))
      break
    case 'observe':
      applyUsage(work, name, act)
      break
    case 'charge':
      changeLimit(work, name, (limits) => chargeUsage(limits.get(name), act.numbers, work.now))
      break
    case 'release':
      released = releaseTicket(work, act.ticket)
      break
  }
  work.addHint({ kind: 'limit', name })
  const after = new LimitSession(work).get(name)
  return { epoch: after.epoch, pausedFor: Math.max(0, after.pausedUntil - work.now), released }
}

/** Changes a limit. Its unused slots become void, and their tickets get new slots in the same order (M2, M3). */
function changeLimit(work: CommitContext, name: string, change: (limits: LimitSession) => LimitState): void {
  const { limits: table } = work.tables
  const limits = new LimitSession(work)
  // A ticket whose slot time has passed has lost its order. No caller waits for it, so it must not take a new slot.
  const unused = table.findUnused(name, NEVER).filter((row) => !isTicketExpired(row, work))
  for (const row of unused) table.removeTicket(row.ticket)
  // The newest tickets go first, because their slots are at the end of the log.
  for (const row of unused.toReversed()) returnTicketSlots(work, limits, row)
  limits.put(name, change(limits))
  for (const row of unused) {
    // The caller has not learned the new time yet, so the slot is not used.
    table.putTicket(giveSlot(work, limits, row))
  }
  limits.save()
}

/** Returns the slot in each limit of the ticket. A slot left in one limit would be lost to all other callers. */
function returnTicketSlots(work: CommitContext, limits: LimitSession, row: TicketRow): void {
  for (const limit of row.limits) {
    const state = limits.loadForSlot(limit, row.at)
    const unused = work.tables.limits.findLastUnused(limit.name)?.at ?? 0
    // For used slots the store knows only that none is later than now.
    const last = Math.max(unused, Math.min(state.last, work.now))
    limits.put(limit.name, returnSlot(state, limit, row.at, last))
  }
}

/** Applies the usage that the other side reports. It cannot include future slots, so they move behind that usage. */
function applyUsage(work: CommitContext, name: string, { numbers, used, resetsIn }: UsageObservation): void {
  const { now } = work
  if (used >= numbers.rate)
    return changeLimit(work, name, (limits) => pauseLimit(limits.get(name), resetsIn, now, false))
  // The report cannot include slots that no caller used either. This only counts: slots whose time has passed stay
  // given.
  const trial = new LimitSession(work)
  for (const row of work.tables.limits.findUnused(name, now)) returnTicketSlots(work, trial, row)
  const cost = computeUnknownUsage(trial.loadSince(name, now - numbers.per), numbers, used, now)
  // Our own calls usually explain the whole report.
  if (cost > 0) changeLimit(work, name, (limits) => chargeUsage(limits.get(name), { ...numbers, cost }, now))
  return undefined
}
/** Returns a slot only if it was the last one given: later slots were promised their times (M7). */
function releaseTicket(work: CommitContext, ticket: string): boolean {
  const { limits: table } = work.tables
  const limits = new LimitSession(work)
  const row = table.getTicket(ticket)
  if (row === undefined || row.used) return false
  const newest = row.limits.every(
    ({ name }) => table.findLastUnused(name)?.ticket === ticket && limits.get(name).last <= row.at,
  )
  if (!newest) return false
  table.removeTicket(ticket)
  returnTicketSlots(work, limits, row)
  limits.save()
  return true
}

/** `leasePermits` shares n permits among all processes. A process that stops renewing loses its permits (L20). */
export function leasePermits(work: CommitContext, call: LeasePermitsCall): readonly number[] {
  const { small } = work.tables
  return call.requests.map(({ name, want, max }) => {
    const others = small.findPermits(name).filter((held) => held.process !== call.process && held.until > work.now)
    const taken = others.reduce((sum, held) => sum + held.n, 0)
    const n = Math.max(0, Math.min(want, max - taken))
    if (n === 0) small.removePermit(name, call.process)
    else small.putPermit(name, call.process, { n, until: work.now + call.lease })
    return n
  })
}

export function updatePressure(work: CommitContext, call: UpdatePressureCall): readonly number[] {
  const { small } = work.tables
  return call.flows.map(({ flow, raise: up }) => {
    const before = small.getPressure(flow) ?? NO_PRESSURE
    const after = up ? raisePressure(before, work.now) : before
    if (after !== before) small.putPressure(flow, after)
    return computePressureLevel(after, work.now)
  })
}

type NamedLimitParameters = LimitParameters & { readonly name: string }

/** `LimitSession` reads and writes each limit once per call, with as many pages of older slots as the call needs. */
class LimitSession {
  readonly #context: CommitContext
  readonly #states = new Map<string, LimitState>()
  readonly #changed = new Set<string>()

  constructor(work: CommitContext) {
    this.#context = work
  }

  get(name: string): LimitState {
    return this.#states.get(name) ?? this.#context.tables.limits.get(name) ?? INITIAL_LIMIT_STATE
  }

  /** `loadForNextSlot` loads the slots that determine the next slot. */
  loadForNextSlot(limit: NamedLimitParameters): LimitState {
    return this.#loadPages(limit.name, (state) => needsSlotPage(state, limit))
  }

  /** `loadForSlot` loads the pages back to this slot. */
  loadForSlot(limit: NamedLimitParameters, at: Millis): LimitState {
    return this.#loadPages(limit.name, (state) => !isSlotLoaded(state, limit, at))
  }

  /** `loadSince` loads all slots after the given time. */
  loadSince(name: string, since: Millis): LimitState {
    return this.#loadPages(name, ({ slots }) => slots[0] === undefined || slots[0].at > since)
  }

  #loadPages(name: string, isLacking: (state: LimitState) => boolean): LimitState {
    let state = this.get(name)
    while (state.pages > 0 && isLacking(state)) {
      state = restoreSlotPage(state, this.#context.tables.limits.getPage(name, state.pages))
    }
    this.#states.set(name, state)
    return state
  }

  put(name: string, state: LimitState): void {
    this.#states.set(name, state)
    this.#changed.add(name)
  }

  /**
   * `putWithPaging` stores a limit with a new slot. It moves older slots to a page when there are too many to write with each call.
   */
  putWithPaging(limit: NamedLimitParameters, given: LimitState): void {
    const { tables, now } = this.#context
    const split = moveSlotsToPage(given, limit)
    this.put(limit.name, split?.state ?? given)
    if (split === undefined) return
    tables.limits.putPage(limit.name, split.state.pages, split.page)
    tables.limits.removePagesBefore(limit.name, computeHorizon(given, limit, now))
  }

  save(): void {
    for (const name of this.#changed) this.#context.tables.limits.put(name, this.get(name))
    this.#changed.clear()
  }
}
