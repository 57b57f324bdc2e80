// reserve and regulate: slots of shared limits, given in the order they are asked for (M1 to M5, M7).
import {
  earliest,
  FRESH_LIMIT,
  giveBack,
  observe,
  pause,
  resume,
  slack,
  take,
  tooCostly,
  type LimitState,
} from '../../model/limit.ts'
import { levelAt, NO_PRESSURE, raise } from '../../model/pressure.ts'
import type { PermitsCall, PressureCall, RegulateCall, Reservation, ReserveCall } from '../contract/index.ts'
import type { TicketRow } from './tables.ts'
import type { Work } from './work.ts'

type Request = ReserveCall['requests'][number]
type Wanted = Omit<Request, 'maxWait'>

export function reserve(work: Work, call: ReserveCall): readonly Reservation[] {
  return call.requests.map((request) => {
    const costly = request.limits.find((limit) => tooCostly(limit))
    if (costly !== undefined) return { kind: 'refused', limit: costly.name }
    const known = work.tables.limits.ticket(request.ticket)
    const isNew = known === undefined || isOld(known, work)
    const away = isNew ? momentFor(work, request) - work.now : 0
    if (away > request.maxWait) return { kind: 'far', wait: away }
    const row = isNew ? give(work, request, work.draw()) : known
    if (!row.used && row.at <= work.now) work.tables.limits.putTicket({ ...row, used: true })
    const wait = Math.max(0, row.at - work.now)
    const age = Math.max(0, work.now - row.at)
    return { kind: 'granted', wait, freshFor: slackOf(row) - age, epoch: epochOf(work, request) }
  })
}

/** Its moment has gone by: used any later, the call could fall into another window. */
function isOld(row: TicketRow, work: Work): boolean {
  return work.now - row.at > slackOf(row)
}

function slackOf(row: TicketRow): number {
  return Math.min(...row.limits.map((limit) => slack(limit.per)))
}

function stateOf(work: Work, name: string): LimitState {
  return work.tables.limits.get(name) ?? FRESH_LIMIT
}

function epochOf(work: Work, request: Wanted): number {
  return request.limits.reduce((sum, limit) => sum + stateOf(work, limit.name).epoch, 0)
}

/** One moment that suits all its limits. */
function momentFor(work: Work, { limits }: Wanted): number {
  return Math.max(work.now, ...limits.map((limit) => earliest(stateOf(work, limit.name), limit, work.now)))
}

function give(work: Work, request: Wanted, order: number): TicketRow {
  const { limits } = work.tables
  const at = momentFor(work, request)
  for (const limit of request.limits) limits.put(limit.name, take(stateOf(work, limit.name), limit, at, work.now))
  const row = { ticket: request.ticket, order, at, used: at <= work.now, limits: request.limits }
  limits.putTicket(row)
  return row
}

export interface Regulated {
  readonly epoch: number
  readonly pausedFor: number
  readonly released: boolean
}

export function regulate(work: Work, call: RegulateCall): Regulated {
  const { act, name } = call
  const state = stateOf(work, name)
  let released = false
  switch (act.kind) {
    case 'pause':
      move(work, name, pause(state, act.for, work.now, act.slow))
      break
    case 'resume':
      move(work, name, resume(state))
      break
    case 'observe':
      if (act.used >= act.numbers.rate) move(work, name, pause(state, act.resetsIn, work.now, false))
      else work.tables.limits.put(name, observe(state, act.numbers, act.used, work.now))
      break
    case 'release':
      released = release(work, act.ticket)
      break
  }
  work.hint({ kind: 'limit', name })
  const after = stateOf(work, name)
  return { epoch: after.epoch, pausedFor: Math.max(0, after.pausedUntil - work.now), released }
}

/** The limit changed: slots that are not used are void, and their tickets get new ones in the same order (M2, M3). */
function move(work: Work, name: string, changed: LimitState): void {
  const { limits } = work.tables
  // One whose moment has gone by has lost its place: nobody waits for it, and it takes no new slot from those who do.
  const unused = limits.unused(name).filter((row) => !isOld(row, work))
  let state = changed
  for (const row of unused) {
    // What is left is used, so that none of it is later than now.
    for (const limit of row.limits) if (limit.name === name) state = giveBack(state, limit, row.at, work.now)
  }
  limits.put(name, state)
  for (const row of unused) {
    const moved = give(work, row, row.order)
    // Nobody has been told yet, so that nobody uses it.
    limits.putTicket({ ...moved, used: false })
  }
}

/** Only the last one given can be given back: later ones were promised their moments (M7). */
function release(work: Work, ticket: string): boolean {
  const { limits } = work.tables
  const row = limits.ticket(ticket)
  if (row === undefined || row.used) return false
  const newest = row.limits.every(
    (limit) => limits.unused(limit.name).at(-1)?.ticket === ticket && stateOf(work, limit.name).last <= row.at,
  )
  if (!newest) return false
  limits.removeTicket(ticket)
  for (const limit of row.limits) {
    const last = Math.max(0, ...limits.unused(limit.name).map((other) => other.at))
    limits.put(limit.name, giveBack(stateOf(work, limit.name), limit, row.at, last))
  }
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
