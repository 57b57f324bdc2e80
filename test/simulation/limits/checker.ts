// Checks the replies of a store about limits by what callers see: when each call was handed over, and in which order. It
// keeps plain lists of all calls, and knows only those slots that were in a reply.
import type { Millis } from '../../../src/clock.ts'
import { demand } from '../violation.ts'
import type { NamedLimit } from './commands.ts'

export interface Ticket {
  readonly name: string
  readonly limits: readonly NamedLimit[]
  readonly cost: number
  /** The order of arrival, over all limits. A caller that was too late for its slot counts as new. */
  order: number
  /** A pause moved its slot, which may have passed meanwhile: only the store knows whether the caller was too late. */
  orderUnknown: boolean
  /** The time in its last reply. */
  slot: Millis
  /** When its slot was first moved after that reply, if it was. */
  movedAt: Millis
  /** The number of pauses before that reply. */
  pausesSeen: number
  usedAt: Millis | undefined
  gone: boolean
}

export interface Use {
  readonly at: Millis
  readonly cost: number
}

/** A slot may be used for this long after its time (M1). */
export function slackOf(limits: readonly NamedLimit[]): Millis {
  return Math.min(...limits.map((limit) => Math.min(100, limit.per / 10)))
}

/** M1: no window of `per` has more than `rate` calls; a bucket gives no more than its capacity and its refill. */
export function checkUse(limit: NamedLimit, uses: readonly Use[]): void {
  const last = uses.at(-1)
  if (last === undefined) return
  for (const first of uses) {
    const within = uses.filter((use) => use.at >= first.at).reduce((sum, use) => sum + use.cost, 0)
    const span = last.at - first.at
    if (limit.burst === 0) {
      const tooMany = span < limit.per && within > limit.rate
      demand(!tooMany, `M1: ${within} calls within ${span} ms under ${limit.name}`)
    } else {
      const allowed = limit.burst + ((span + slackOf([limit])) * limit.rate) / limit.per
      demand(within <= allowed, `M1: ${within} calls within ${span} ms from the ${limit.name}`)
    }
  }
}

/** The minimum that the API counted beyond the process's own calls. Unused slots that passed count as calls too. */
export function foreign(limit: NamedLimit, uses: readonly Use[], seen: { used: number; now: Millis }): number {
  const { used, now } = seen
  if (limit.burst === 0) {
    const own = uses.filter((use) => use.at > now - limit.per).reduce((sum, use) => sum + use.cost, 0)
    return used - own
  }
  let lacks = 0
  let at = 0
  for (const use of [...uses, { at: now, cost: 0 }]) {
    lacks = Math.max(0, lacks - ((use.at - at) * limit.rate) / limit.per) + use.cost
    at = use.at
  }
  return used === 0 ? 0 : limit.burst - lacks - Math.max(0, limit.rate - used)
}

/** M2: first come, first served. Only replies since the same pause can be compared. */
export function checkOrder(ticket: Ticket, others: readonly Ticket[]): void {
  for (const other of others) {
    if (other === ticket || other.gone || other.pausesSeen !== ticket.pausesSeen) continue
    if (other.orderUnknown || ticket.orderUnknown) continue
    if (!other.limits.some((limit) => ticket.limits.includes(limit))) continue
    const several = other.limits.length + ticket.limits.length > 2
    if (several && ticket.pausesSeen > 0) continue
    const [first, second] = other.order < ticket.order ? [other, ticket] : [ticket, other]
    demand(first.slot <= second.slot, `M2: ${second.name} is before ${first.name}, which came first`)
  }
}

/** The longest allowed wait of a new caller, if no caller was late, returned a slot or paused. */
export function longestWait(limit: NamedLimit, before: readonly Ticket[], cost: number, now: Millis): Millis {
  const slots = before.map((ticket) => ({ at: ticket.usedAt ?? ticket.slot, cost: ticket.cost }))
  const last = slots.reduce((latest, slot) => Math.max(latest, slot.at), now)
  if (limit.burst > 0) return last + Math.ceil((cost * limit.per) / limit.rate) + 1 - now
  const units = slots.flatMap((slot) => Array.from({ length: slot.cost }, () => slot.at)).toSorted((a, b) => a - b)
  const blocking = units[units.length + cost - 1 - limit.rate]
  const free = blocking === undefined ? now : blocking + limit.per + slackOf([limit])
  return Math.max(last, free) - now
}
