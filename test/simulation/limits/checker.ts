// Judges what a store answers about limits by what callers see: when each call was handed over, and who came first. It
// keeps plain lists of all calls, and knows nothing of slots but what it was told.
import type { Millis } from '../../../src/clock.ts'
import { demand } from '../violation.ts'
import type { NamedLimit } from './commands.ts'

export interface Ticket {
  readonly name: string
  readonly limits: readonly NamedLimit[]
  readonly cost: number
  /** Who came first, over all limits. A caller that came too late for its slot comes anew. */
  order: number
  /** Its slot was moved by a pause and may have passed meanwhile: whether it came too late only the store knows. */
  orderUnknown: boolean
  /** The moment it was last told. */
  slot: Millis
  /** When its slot was first moved since it was told, if it was. */
  movedAt: Millis
  /** How many pauses there had been when it was told. */
  pausesSeen: number
  usedAt: Millis | undefined
  gone: boolean
}

export interface Use {
  readonly at: Millis
  readonly cost: number
}

/** A slot may be used this long after its time (M1). */
export function slackOf(limits: readonly NamedLimit[]): Millis {
  return Math.min(...limits.map((limit) => Math.min(100, limit.per / 10)))
}

/** M1: no window of `per` holds more than `rate`; a bucket gives no more than its capacity and what flowed in. */
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

/** What the other side counted beyond our calls, at least. Slots that went by unused stand for calls as well. */
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

/** M2: first come, first served. Only what was told since the same pause can be compared. */
export function checkOrder(ticket: Ticket, others: readonly Ticket[]): void {
  for (const other of others) {
    if (other === ticket || other.gone || other.pausesSeen !== ticket.pausesSeen) continue
    if (other.orderUnknown || ticket.orderUnknown) continue
    if (!other.limits.some((limit) => ticket.limits.includes(limit))) continue
    const several = other.limits.length + ticket.limits.length > 2
    if (several && ticket.pausesSeen > 0) continue
    const [first, second] = other.order < ticket.order ? [other, ticket] : [ticket, other]
    demand(first.slot <= second.slot, `M2: ${second.name} is before ${first.name}, who came first`)
  }
}

/** The longest a new caller may be made to wait, when nobody was late, gave back or paused: by the rule and no more. */
export function longestWait(limit: NamedLimit, before: readonly Ticket[], cost: number, now: Millis): Millis {
  const slots = before.map((ticket) => ({ at: ticket.usedAt ?? ticket.slot, cost: ticket.cost }))
  const last = slots.reduce((latest, slot) => Math.max(latest, slot.at), now)
  if (limit.burst > 0) return last + Math.ceil((cost * limit.per) / limit.rate) + 1 - now
  const units = slots.flatMap((slot) => Array.from({ length: slot.cost }, () => slot.at)).toSorted((a, b) => a - b)
  const blocking = units[units.length + cost - 1 - limit.rate]
  const free = blocking === undefined ? now : blocking + limit.per + slackOf([limit])
  return Math.max(last, free) - now
}
