// One history of calls under limits: the callers, the replies that they got, and when they called.
import type { Millis } from '../../../src/clock.ts'
import type { RegulateCall, RegulateReply, Reservation, Store } from '../../../src/store/contract/index.ts'
import { demand } from '../violation.ts'
import type { VirtualClock } from '../virtual-clock.ts'
import { checkOrder, checkUse, foreign, longestWait, slackOf, type Ticket, type Use } from './checker.ts'
import { LIMITS, type LimitCommand, type NamedLimit } from './commands.ts'

export class LimitWorld {
  readonly store: Store
  readonly clock: VirtualClock
  readonly log: string[] = []
  readonly reached = new Map<string, number>()
  tickets: Ticket[] = []
  readonly uses = new Map<NamedLimit, Use[]>()
  readonly pausedUntil = new Map<NamedLimit, Millis>()
  #pauses = 0
  #orders = 0
  /** No caller was late, returned a slot, forgot or paused: every wait can be predicted. */
  #orderly = true
  /** A reduced rate began or ended: slots that move may be earlier than in the reply. */
  #movesEarlier = false
  /** The maximum number of slots that passed unused. */
  readonly #unused = new Map<NamedLimit, number>()

  constructor(store: Store, clock: VirtualClock) {
    this.store = store
    this.clock = clock
  }

  reach(what: string): void {
    this.reached.set(what, (this.reached.get(what) ?? 0) + 1)
  }

  waiting(): readonly Ticket[] {
    return this.tickets.filter((ticket) => ticket.usedAt === undefined && !ticket.gone)
  }

  async step(command: LimitCommand): Promise<void> {
    switch (command.kind) {
      case 'ask':
        return this.#burst(command.limits, command.cost, command.callers)
      case 'advance':
        return this.clock.advance(command.by)
      case 'serve':
        for (let n = 0; n < command.callers; n++) await this.serveNext()
        return undefined
      case 'snoozed':
        return this.#again(this.tickets[command.ticket % this.tickets.length])
      case 'forget': {
        const ticket = this.waiting()[command.ticket % Math.max(1, this.waiting().length)]
        this.#orderly = false
        if (ticket !== undefined) this.#leave(ticket)
        return undefined
      }
      case 'release':
        return this.#release(this.waiting()[command.ticket % Math.max(1, this.waiting().length)])
      case 'pause':
      case 'resume':
        return this.#regulate(command)
      case 'observe':
        return this.#observe(LIMITS[command.limit], command.eighths)
      case 'charge':
        return this.#charge(LIMITS[command.limit], command.cost)
    }
  }

  async #burst(limits: number, cost: number, callers: number): Promise<void> {
    const chosen = limits < LIMITS.length ? [limits] : [limits - LIMITS.length, limits - LIMITS.length + 1]
    for (let n = 0; n < callers; n++) {
      const ticket: Ticket = {
        name: `ticket ${this.#orders}`,
        limits: chosen.flatMap((index) => LIMITS[index] ?? []),
        cost,
        order: this.#orders++,
        orderUnknown: false,
        slot: 0,
        movedAt: 0,
        pausesSeen: this.#pauses,
        usedAt: undefined,
        gone: false,
      }
      await this.#first(ticket)
    }
  }

  async ask(ticket: Ticket): Promise<Reservation> {
    const limits = ticket.limits.map((limit) => ({ ...limit, cost: ticket.cost }))
    const { results, now } = await this.store.reserve({
      requests: [{ ticket: ticket.name, limits, maxWait: Number.MAX_SAFE_INTEGER }],
    })
    demand(now === this.clock.now(), 'a reply says the time of the store')
    const [result] = results
    demand(result !== undefined, 'reserve answers each request')
    const told = result.kind === 'refused' ? `refused by ${result.limit}` : `${result.kind}, wait ${result.wait}`
    this.log.push(
      `at ${now - 1_700_000_000_000}: ${ticket.name} (${ticket.cost} of ${ticket.limits.map((one) => one.name).join(' and ')}): ${told}`,
    )
    return result
  }

  async #first(ticket: Ticket): Promise<void> {
    const tooCostly = ticket.limits.some((limit) => ticket.cost > (limit.burst === 0 ? limit.rate : limit.burst))
    const now = this.clock.now()
    const bounds = ticket.limits.map((limit) => longestWait(limit, this.#sharing(limit), ticket.cost, now))
    const answer = await this.ask(ticket)
    demand((answer.kind === 'refused') === tooCostly, `M5: ${ticket.cost} is ${answer.kind}`)
    if (answer.kind === 'refused') return this.reach('refused')
    const bound = Math.max(...bounds)
    if (this.#orderly) demand(answer.wait <= bound, `M2: ${ticket.name} waits ${answer.wait}, though ${bound} would do`)
    this.reach(answer.wait === 0 ? 'at once' : 'has to wait')
    this.tickets.push(ticket)
    this.#told(ticket, answer.wait)
  }

  #sharing(limit: NamedLimit): readonly Ticket[] {
    return this.tickets.filter((ticket) => ticket.limits.includes(limit))
  }

  #told(ticket: Ticket, wait: Millis): void {
    const now = this.clock.now()
    const asTold =
      wait === 0 && ticket.slot > 0 && ticket.pausesSeen === this.#pauses && now <= ticket.slot + slackOf(ticket.limits)
    if (!asTold) ticket.slot = now + wait
    ticket.pausesSeen = this.#pauses
    for (const limit of ticket.limits) {
      const paused = this.pausedUntil.get(limit) ?? 0
      demand(ticket.slot >= paused, `M3: ${ticket.name} may call ${paused - ticket.slot} ms before the pause ends`)
    }
    if (wait === 0) this.#use(ticket, now)
    checkOrder(ticket, this.tickets)
  }

  #use(ticket: Ticket, now: Millis): void {
    ticket.usedAt = now
    this.reach('used')
    for (const limit of ticket.limits) {
      const uses = this.uses.get(limit) ?? []
      this.uses.set(limit, uses)
      uses.push({ at: now, cost: ticket.cost })
      checkUse(limit, uses)
    }
  }

  /** The next caller that may call comes at its time. */
  async serveNext(): Promise<void> {
    const next = this.waiting().toSorted((a, b) => a.slot - b.slot || a.order - b.order)[0]
    if (next === undefined) return
    this.clock.advance(Math.max(0, next.slot - this.clock.now()))
    await this.#again(next)
  }

  async #again(ticket: Ticket | undefined): Promise<void> {
    if (ticket === undefined || ticket.gone) return
    const now = this.clock.now()
    const slack = slackOf(ticket.limits)
    if (ticket.usedAt !== undefined) return this.#afterUse(ticket, now - ticket.slot, slack)
    const late = now > ticket.slot + slack
    const paused = ticket.pausesSeen !== this.#pauses
    if (late) {
      this.#orderly = false
      this.#wentBy(ticket)
      ticket.orderUnknown ||= paused
      ticket.order = this.#orders++
    }
    const answer = await this.ask(ticket)
    demand(answer.kind === 'granted', 'M2: a reservation that was granted is refused')
    if (!late && !paused) {
      const expected = Math.max(0, ticket.slot - now)
      demand(answer.wait === expected, `M2: ${ticket.name} got ${expected} and now ${answer.wait}`)
    }
    // Its slot was moved, and the caller is in time for it, although it does not know its slot.
    if (paused && answer.wait === 0) ticket.orderUnknown = true
    // Its slot may have come, and passed, before the time in the reply.
    if (paused && this.#mayHaveGone(ticket, now - slack)) {
      ticket.orderUnknown = true
      this.#wentBy(ticket)
    }
    this.reach(late ? 'again: too late' : paused ? 'again: after a pause' : 'again: as told')
    this.#told(ticket, answer.wait)
  }

  #mayHaveGone(ticket: Ticket, before: Millis): boolean {
    return ticket.movedAt < before && (this.#movesEarlier || ticket.limits.length > 1)
  }

  #leave(ticket: Ticket): void {
    ticket.gone = true
    this.#wentBy(ticket)
  }

  #wentBy({ limits, cost }: Ticket): void {
    for (const limit of limits) this.#unused.set(limit, (this.#unused.get(limit) ?? 0) + cost)
  }

  /** The reply that it may call was lost: it gets the same reply again, and has called once. */
  async #afterUse(ticket: Ticket, since: Millis, slack: Millis): Promise<void> {
    if (since > slack || ticket.pausesSeen !== this.#pauses || ticket.orderUnknown) return
    const answer = await this.ask(ticket)
    demand(answer.kind === 'granted' && answer.wait === 0, `M2: ${ticket.name} may call no longer ${since} ms after`)
    this.reach('again: used')
  }

  async #release(ticket: Ticket | undefined): Promise<void> {
    const limit = ticket?.limits[0]
    if (ticket === undefined || limit === undefined) return
    const { released } = await this.#send(limit, { kind: 'release', ticket: ticket.name })
    const later = this.tickets.some((other) => this.#cameAfter(other, ticket))
    if (later) demand(!released, `M7: ${ticket.name} gave its slot back though a later one was given`)
    this.reach(released ? 'released' : 'not released')
    this.#orderly = false
    this.#leave(ticket)
    if (released) this.tickets = this.tickets.filter((other) => other !== ticket)
  }

  #cameAfter(other: Ticket, ticket: Ticket): boolean {
    const comparable = [other, ticket].every((one) => !one.orderUnknown && one.pausesSeen === this.#pauses)
    const shares = other.limits.some((limit) => ticket.limits.includes(limit))
    // Of several slots at one moment, any can be returned.
    return comparable && shares && other.order > ticket.order && other.slot > ticket.slot
  }

  async #regulate(command: Extract<LimitCommand, { kind: 'pause' | 'resume' }>): Promise<void> {
    const limit = LIMITS[command.limit % LIMITS.length]
    if (limit === undefined) return
    this.#orderly = false
    const { kind } = command
    const act = kind === 'pause' ? { kind, for: command.for, slow: command.slow } : { kind }
    const { pausedFor } = await this.#send(limit, act)
    const asked = kind === 'pause' ? command.for : 0
    demand(pausedFor >= asked && (kind === 'pause' || pausedFor === 0), `M3: ${kind} leaves a pause of ${pausedFor}`)
    this.pausedUntil.set(limit, this.clock.now() + pausedFor)
    this.#movesEarlier ||= kind === 'resume' || command.slow
    this.#moved()
    this.reach(kind)
  }

  /** The store may count unused slots as calls; in a bucket also those of callers that have not come yet. */
  #mayStandFor(limit: NamedLimit): number {
    const now = this.clock.now()
    const due = this.waiting().filter(
      (ticket) => ticket.limits.includes(limit) && (ticket.slot <= now || ticket.pausesSeen !== this.#pauses),
    )
    const late = limit.burst === 0 ? 0 : due.reduce((sum, ticket) => sum + ticket.cost, 0)
    return late + (this.#unused.get(limit) ?? 0)
  }

  #moved(): void {
    for (const ticket of this.tickets) if (ticket.pausesSeen === this.#pauses) ticket.movedAt = this.clock.now()
    this.#pauses += 1
  }

  /** Calls of others count like own calls, made now. */
  async #observe(limit: NamedLimit | undefined, eighths: number): Promise<void> {
    if (limit === undefined) return
    const now = this.clock.now()
    const used = Math.floor((limit.rate * eighths) / 8)
    this.#orderly = false
    await this.#send(limit, { kind: 'observe', numbers: { ...limit, cost: 1 }, used, resetsIn: limit.per })
    const uses = this.uses.get(limit) ?? []
    this.uses.set(limit, uses)
    const cost = foreign(limit, uses, { used, now }) - this.#mayStandFor(limit)
    this.reach(cost > 0 ? 'observe: news' : 'observe: known')
    if (cost > 0) uses.push({ at: now, cost })
    this.#moved()
  }

  async #charge(limit: NamedLimit | undefined, cost: number): Promise<void> {
    if (limit === undefined) return
    this.#orderly = false
    await this.#send(limit, { kind: 'charge', numbers: { ...limit, cost } })
    const uses = this.uses.get(limit) ?? []
    this.uses.set(limit, uses)
    uses.push({ at: this.clock.now(), cost })
    this.#moved()
    this.reach('charge')
  }

  async #send(limit: NamedLimit, act: RegulateCall['act']): Promise<RegulateReply> {
    this.log.push(`at ${this.clock.now() - 1_700_000_000_000}: ${act.kind} ${limit.name} ${JSON.stringify(act)}`)
    return this.store.regulate({ name: limit.name, act })
  }
}
