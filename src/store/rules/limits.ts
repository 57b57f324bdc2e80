// reserve and regulate: slots of shared limits, given in the order they are asked for (M1 to M7).
import { NEVER, type Millis } from '../../clock.ts'
import {
  charge,
  earliest,
  giveBack,
  pause,
  promise,
  resume,
  slack,
  take,
  tooCostly,
  unknownOf,
  type LimitState,
} from '../../model/limit.ts'
import { levelAt, NO_PRESSURE, raise } from '../../model/pressure.ts'
import type { PermitsCall, PressureCall, RegulateCall, Reservation, ReserveCall } from '../contract/index.ts'
import { LimitsAtHand } from './limits-at-hand.ts'
import type { TicketRow } from './tables.ts'
import type { Work } from './work.ts'

type Request = ReserveCall['requests'][number]
type Wanted = Omit<Request, 'maxWait'>
type Observation = Extract<RegulateCall['act'], { kind: 'observe' }>

export function reserve(work: Work, call: ReserveCall): readonly Reservation[] {
  const limits = new LimitsAtHand(work)
  const results = call.requests.map((request) => reserveOne(work, limits, request))
  limits.save()
  return results
}

function reserveOne(work: Work, limits: LimitsAtHand, request: Request): Reservation {
  const costly = request.limits.find((limit) => tooCostly(limit))
  if (costly !== undefined) return { kind: 'refused', limit: costly.name }
  const { limits: table } = work.tables
  const known = table.ticket(request.ticket)
  const isNew = known === undefined || isOld(known, work)
  const away = isNew ? momentFor(work, limits, request) - work.now : 0
  if (away > request.maxWait) return { kind: 'far', ...putOff(work, limits, request) }
  if (isNew && known !== undefined) table.removeTicket(known.ticket)
  const row = isNew ? give(work, limits, { ...request, order: work.draw() }) : known
  const isUsed = row.used || row.at <= work.now
  if (isNew || isUsed !== row.used) table.putTicket({ ...row, used: isUsed })
  const wait = Math.max(0, row.at - work.now)
  const age = Math.max(0, work.now - row.at)
  const epoch = request.limits.reduce((sum, limit) => sum + limits.get(limit.name).epoch, 0)
  return { kind: 'granted', wait, freshFor: slackOf(row) - age, epoch }
}

/** Its moment has gone by: used any later, the call could fall into another window. */
function isOld(row: TicketRow, work: Work): boolean {
  return work.now - row.at > slackOf(row)
}

function slackOf(row: TicketRow): number {
  return Math.min(...row.limits.map((limit) => slack(limit.per)))
}

/** One moment that suits all its limits. */
function momentFor(work: Work, limits: LimitsAtHand, wanted: Wanted): Millis {
  return Math.max(work.now, ...wanted.limits.map((limit) => earliest(limits.next(limit), limit, work.now)))
}

/** When to come again: the limits that make it wait each remember what they told, so that the next comes after it. */
function putOff(work: Work, limits: LimitsAtHand, request: Request): { readonly wait: Millis; readonly again: Millis } {
  let [moment, again] = [0, 0]
  for (const limit of request.limits) {
    const state = limits.next(limit)
    const first = earliest(state, limit, work.now)
    if (first - work.now <= request.maxWait) continue
    const promised = promise(state, limit, work.now)
    limits.put(limit.name, { ...state, promised })
    moment = Math.max(moment, promised, first)
    again = Math.max(again, promised)
  }
  return { wait: Math.ceil(moment) - work.now, again: Math.ceil(again) - work.now }
}

/** The slot, in all its limits. Whether it is used already is for the caller to say. */
function give(work: Work, limits: LimitsAtHand, wanted: Wanted & { readonly order: number }): TicketRow {
  const at = momentFor(work, limits, wanted)
  for (const limit of wanted.limits) limits.putGiven(limit, take(limits.next(limit), limit, at, work.now))
  return { ticket: wanted.ticket, order: wanted.order, at, used: false, limits: wanted.limits }
}

export interface Regulated {
  readonly epoch: number
  readonly pausedFor: number
  readonly released: boolean
}

export function regulate(work: Work, call: RegulateCall): Regulated {
  const { act, name } = call
  let released = false
  switch (act.kind) {
    case 'pause':
      move(work, name, (limits) => pause(limits.get(name), act.for, work.now, act.slow))
      break
    case 'resume':
      move(work, name, (limits) => resume(limits.since(name, work.now), work.now))
      break
    case 'observe':
      heed(work, name, act)
      break
    case 'release':
      released = release(work, act.ticket)
      break
  }
  work.hint({ kind: 'limit', name })
  const after = new LimitsAtHand(work).get(name)
  return { epoch: after.epoch, pausedFor: Math.max(0, after.pausedUntil - work.now), released }
}

/** The limit changes: slots that are not used are void, and their tickets get new ones in the same order (M2, M3). */
function move(work: Work, name: string, change: (limits: LimitsAtHand) => LimitState): void {
  const { limits: table } = work.tables
  const limits = new LimitsAtHand(work)
  // One whose moment has gone by has lost its place: nobody waits for it, and it takes no new slot from those who do.
  const unused = table.unused(name, NEVER).filter((row) => !isOld(row, work))
  for (const row of unused) table.removeTicket(row.ticket)
  // The newest first, as they are found at the end of the log.
  for (const row of unused.toReversed()) takeBack(work, limits, row)
  limits.put(name, change(limits))
  for (const row of unused) {
    // Nobody has been told yet, so that nobody uses it.
    table.putTicket(give(work, limits, row))
  }
  limits.save()
}

/** In each of its limits: what is left there in one of them would be lost to all others. */
function takeBack(work: Work, limits: LimitsAtHand, row: TicketRow): void {
  for (const limit of row.limits) {
    const state = limits.holding(limit, row.at)
    const unused = work.tables.limits.lastUnused(limit.name)?.at ?? 0
    // Of those that were used it is only known that none is later than now.
    const last = Math.max(unused, Math.min(state.last, work.now))
    limits.put(limit.name, giveBack(state, limit, row.at, last))
  }
}

/** The other side says what was used. What is still to come it cannot have seen: that moves behind it. */
function heed(work: Work, name: string, { numbers, used, resetsIn }: Observation): void {
  const { now } = work
  if (used >= numbers.rate) return move(work, name, (limits) => pause(limits.get(name), resetsIn, now, false))
  // Nor were those calls that nobody came for. This is only to count: what has gone by stays given.
  const trial = new LimitsAtHand(work)
  for (const row of work.tables.limits.unused(name, now)) takeBack(work, trial, row)
  const cost = unknownOf(trial.since(name, now - numbers.per), numbers, used, now)
  // Most of what it says is what we know.
  if (cost > 0) move(work, name, (limits) => charge(limits.get(name), { ...numbers, cost }, now))
  return undefined
}
/** Only the last one given can be given back: later ones were promised their moments (M7). */
function release(work: Work, ticket: string): boolean {
  const { limits: table } = work.tables
  const limits = new LimitsAtHand(work)
  const row = table.ticket(ticket)
  if (row === undefined || row.used) return false
  const newest = row.limits.every(
    ({ name }) => table.lastUnused(name)?.ticket === ticket && limits.get(name).last <= row.at,
  )
  if (!newest) return false
  table.removeTicket(ticket)
  takeBack(work, limits, row)
  limits.save()
  return true
}

/** n permits for all processes; a process that stops renewing loses its own (L20). */
export function permits(work: Work, call: PermitsCall): readonly number[] {
  const { small } = work.tables
  return call.wants.map(({ name, want, max }) => {
    const others = small.permits(name).filter((held) => held.process !== call.process && held.until > work.now)
    const taken = others.reduce((sum, held) => sum + held.n, 0)
    const n = Math.max(0, Math.min(want, max - taken))
    if (n === 0) small.removePermit(name, call.process)
    else small.putPermit(name, call.process, { n, until: work.now + call.lease })
    return n
  })
}

export function pressure(work: Work, call: PressureCall): readonly number[] {
  const { small } = work.tables
  return call.flows.map(({ flow, raise: up }) => {
    const before = small.pressure(flow) ?? NO_PRESSURE
    const after = up ? raise(before, work.now) : before
    if (after !== before) small.putPressure(flow, after)
    return levelAt(after, work.now)
  })
}
