// The loop of a process: settles what has ended, claims what is due, sleeps until the next deadline or a wake-up (L5).
// One turn at a time; a turn whose answer was lost is repeated as it was.
import type { Clock, Millis } from '../clock.ts'
import { EventLoopTurn } from '../event-loop-turn.ts'
import type { Flow } from '../model/flow.ts'
import type { Claim, KeptOut, Lease, Settle, Settled, Store, TurnCall, TurnReply } from '../store/contract/index.ts'
import { Deadlines } from './due.ts'
import type { Permits } from './permits.ts'
import { Slots } from './slots.ts'
import type { StoreTime } from './store-time.ts'

export interface LoopParts {
  readonly store: Pick<Store, 'turn' | 'stats'>
  readonly clock: Clock
  readonly time: StoreTime
  readonly process: string
  readonly flows: readonly Flow[]
  readonly permits: Permits
  readonly lease: Millis
  readonly atOnce: number
  readonly poll: Millis
  /** Wake-ups that come thick and fast share a turn: the store is asked at most so often for news alone. */
  readonly newsApart: Millis
  readonly routes: () => number
  /** Somebody runs it, and calls `settle` or `forget` when it is over. `until`: when the lease ends, monotonic. */
  readonly begin: (lease: Lease, flow: Flow, until: Millis) => void
  /** What is kept with a run that is given back. */
  readonly givenBack: (state64: string) => string
  readonly crashed: (run: string) => void
  /** Undefined: it is over. */
  readonly trouble: (error: unknown) => void
}

/** What the store said of a settlement, and what of its events it kept out. */
export type Told = (settled: Settled, keptOut: readonly KeptOut[]) => void

/** A class, and no literal, for the sake of the garbage collector (decision 13). */
class Ending {
  readonly settle: Settle
  readonly told: Told
  /** By which what it published was routed. */
  readonly routes: number

  constructor(settle: Settle, told: Told, routes: number) {
    this.settle = settle
    this.told = told
    this.routes = routes
  }
}

interface Answer {
  readonly reply: TurnReply
  readonly sent: Millis
}

const ASK_AGAIN = 1_000
const BODY_BUDGET = 32 * 1024 * 1024
/** So many failures of one call are not bad luck any more. */
const PATIENCE = 8
/** Of the runs that go on. */
const FEW = 1 / 4
/** So many turns of the event loop. They take no time when it has nothing to do. */
const GATHERED = 3
const AFTER_TROUBLE = [50, 100, 250, 500, 1_000] as const

export class Loop {
  readonly #parts: LoopParts
  readonly #deadlines: Deadlines
  readonly #slots: Slots
  readonly #eventLoop = new EventLoopTurn()
  #endings: Ending[] = []
  #request = 0
  #claims = true
  #stopped = false
  #abandoned = false
  #wake: () => void = () => {}
  #endPause: () => void = () => {}
  #askedAt = -Infinity
  #lookedAt = -Infinity
  /** How often in a row permits could not even be asked for. */
  #refusals = 0
  #going: Promise<void> | undefined
  #turning: Promise<void> | undefined

  constructor(parts: LoopParts) {
    this.#parts = parts
    this.#deadlines = new Deadlines(parts.flows.map((flow) => flow.name))
    this.#slots = new Slots(parts.flows, parts.atOnce)
  }

  start(): void {
    this.#going ??= this.#go()
  }

  /** Something of the flow may be due: a hint. */
  news(flow: string): void {
    this.#deadlines.changed(flow)
    this.#wake()
  }

  /**
   * Settled with the next turn. `told` is called with what the store said, before anything else is begun. `routes`: the epoch by
   * which what it publishes was routed.
   */
  settle(lease: Lease, settle: Settle, told: Told, routes: number = Infinity): void {
    this.#freed(lease)
    if (this.#abandoned) return told('lost', [])
    this.#endings.push(new Ending(settle, told, routes))
    return this.#wake()
  }

  /** The run is over for this process, and nothing is to be said of it. */
  forget(lease: Lease): void {
    this.#freed(lease)
    this.#wake()
  }

  /** Nothing new is begun once this resolves: what is being claimed just now still is. */
  async stopClaiming(): Promise<void> {
    this.#claims = false
    await this.#turning
  }

  /** Settles what has ended, and ends. */
  async stop(): Promise<void> {
    this.#claims = false
    this.#stopped = true
    this.#wake()
    await this.#going
  }

  /** Ends without settling anything. */
  abandon(): void {
    this.#claims = false
    this.#stopped = true
    this.#abandoned = true
    this.#endings = []
    this.#wake()
    this.#endPause()
  }

  roomFor(flow: Flow): number {
    return this.#slots.roomFor(flow)
  }

  /** Whether this process has all the runs that it may have. */
  isFull(): boolean {
    return this.#slots.isFull
  }

  #freed(lease: Lease): void {
    const forAll = this.#slots.freed(lease)
    for (const { name } of this.#parts.flows) if (forAll || name === lease.flow) this.#deadlines.changed(name)
  }

  async #go(): Promise<void> {
    while (!this.#abandoned && (!this.#stopped || this.#endings.length > 0)) {
      if (this.#claims && this.#shouldLook()) await this.#look()
      await this.#gathered()
      if (this.#abandoned) return
      const due = this.#claims ? this.#due() : []
      if (this.#endings.length === 0 && (due.length === 0 || !this.#mayAsk(due))) await this.#sleep()
      else await (this.#turning = this.#turn(due))
    }
  }

  /** Of many runs few have ended: more do with the next answers that are read, and a turn for one costs as much as for ten. */
  async #gathered(): Promise<void> {
    const areFew = (): boolean => this.#endings.length > 0 && this.#endings.length < this.#slots.inUse * FEW
    for (let turns = 0; turns < GATHERED && areFew(); turns++) await this.#eventLoop.over()
  }

  /** A lease that ends makes no noise: what was stuck behind it is looked at now and then, however busy this process is. */
  #shouldLook(): boolean {
    const { clock, flows, poll } = this.#parts
    return clock.monotonic() - this.#lookedAt >= poll && flows.some(({ name }) => this.#deadlines.isStuck(name))
  }

  /** Flows that have something to do and room to do it in. */
  #due(): readonly Flow[] {
    const now = this.#parts.time.now()
    return this.#slots.inTurn().filter((flow) => this.#hasRoom(flow) && this.#deadlines.isDue(flow.name, now))
  }

  #hasRoom(flow: Flow): boolean {
    const { permits } = this.#parts
    // Where more permits may be had there may be room: they are asked for when there is something to do.
    return this.#slots.free(flow, permits.mayHaveMore(flow) ? flow.concurrency : permits.of(flow)) > 0
  }

  /** A deadline is never kept waiting; mere news is. */
  #mayAsk(due: readonly Flow[]): boolean {
    const { time, clock, newsApart } = this.#parts
    const now = time.now()
    const isNews = due.every((flow) => !this.#deadlines.hasPassed(flow.name, now))
    return !isNews || clock.monotonic() - this.#askedAt >= newsApart
  }

  async #sleep(): Promise<void> {
    const { clock, time, flows, poll, newsApart } = this.#parts
    const woken = Promise.withResolvers<void>()
    this.#wake = woken.resolve
    const open = flows.filter((flow) => this.#hasRoom(flow)).map((flow) => flow.name)
    const isNews = this.#claims && open.some((flow) => this.#deadlines.isChanged(flow))
    const next = this.#claims ? this.#deadlines.next(open) : undefined
    const untilDue = next === undefined ? Infinity : Math.max(0, next - time.now())
    const untilNews = isNews ? Math.max(0, this.#askedAt + newsApart - clock.monotonic()) : Infinity
    const delay = Math.min(untilDue, untilNews, poll)
    let looks = false
    const cancel = clock.after(delay, () => {
      looks = delay === poll
      woken.resolve()
    })
    await woken.promise
    cancel()
    this.#wake = () => {}
    if (looks) await this.#look()
  }

  /** No wake-up for some time: one may have been lost, and permits that nobody uses here may be wanted elsewhere. */
  async #look(): Promise<void> {
    const { store, clock, flows, permits, time, trouble } = this.#parts
    this.#lookedAt = clock.monotonic()
    try {
      // Reads, and writes nothing: an idle process leaves the disk alone.
      const heard = time.asking()
      const stats = await store.stats()
      heard(stats)
      trouble(undefined)
      for (const { name } of flows) this.#deadlines.seen(name, stats.flows.find(({ flow }) => flow === name)?.due)
      await permits.release(flows.filter((flow) => !this.#slots.isBusy(flow)))
    } catch (error) {
      trouble(error)
    }
  }

  async #turn(due: readonly Flow[]): Promise<void> {
    const claim = due.length === 0 ? [] : await this.#claimsOf(due).catch((error: unknown) => this.#refused(due, error))
    const endings = this.#endings
    this.#endings = []
    for (const { flow } of claim) this.#deadlines.asked(flow)
    if (claim.length > 0) this.#askedAt = this.#parts.clock.monotonic()
    if (claim.length === 0 && endings.length === 0) return
    const answer = await this.#settleAndClaim(endings, claim)
    if (this.#abandoned) return
    if (answer !== undefined) this.#begin(answer.reply, answer.sent, claim)
    // One that the store chokes on must not keep the others from being settled.
    else if (endings.length > 1) for (const ending of endings) await this.#settleAndClaim([ending], [])
  }

  async #settleAndClaim(endings: readonly Ending[], claim: readonly Claim[]): Promise<Answer | undefined> {
    const call: TurnCall = {
      process: this.#parts.process,
      request: ++this.#request,
      routes: Math.min(this.#parts.routes(), ...endings.map((ending) => ending.routes)),
      settle: endings.map((ending) => ending.settle),
      claim,
      budget: BODY_BUDGET,
    }
    const answer = await this.#ask(call)
    const isOver = answer !== undefined || this.#abandoned || endings.length === 1
    if (!isOver) return answer
    const keptOut = answer?.reply.keptOut ?? []
    for (const [at, ending] of endings.entries()) {
      const its = keptOut.length === 0 ? keptOut : keptOut.filter(({ settle }) => settle === at)
      ending.told(answer?.reply.settled[at] ?? 'lost', its)
    }
    return answer
  }

  /** Permits are asked for only when there is something to do; until then the flow is merely asked when that will be. */
  async #claimsOf(due: readonly Flow[]): Promise<readonly Claim[]> {
    const { permits, time, lease } = this.#parts
    const now = time.now()
    const ready = due.filter((flow) => this.#deadlines.hasPassed(flow.name, now))
    await permits.ensure(ready, (flow) => this.#slots.roomFor(flow))
    this.#refusals = 0
    const denied = ready.filter((flow) => permits.of(flow) === 0)
    // Others have them all. They may be dead: then their permits end, and nobody says so.
    for (const flow of denied) this.#deadlines.stuck(flow.name, now + ASK_AGAIN)
    const asked = due.filter((flow) => !denied.includes(flow))
    return this.#slots.claims(asked, (flow) => permits.of(flow), lease)
  }

  /** Permits could not even be asked for. What has ended does not wait for that. */
  #refused(due: readonly Flow[], error: unknown): readonly Claim[] {
    this.#parts.trouble(error)
    const until = this.#parts.time.now() + afterTrouble(this.#refusals++)
    for (const flow of due) this.#deadlines.stuck(flow.name, until)
    return []
  }

  /** Ends early when nobody waits for the store any more. */
  async #pause(delay: Millis): Promise<void> {
    const up = Promise.withResolvers<void>()
    const cancel = this.#parts.clock.after(delay, up.resolve)
    this.#endPause = up.resolve
    await up.promise
    cancel()
  }

  /**
   * Until it is answered, or nobody waits for that: the store knows by its number whether it was done. A call that fails
   * again and again on a store that answers others is itself at fault, and is given up.
   */
  async #ask(call: TurnCall): Promise<Answer | undefined> {
    const { store, clock, trouble } = this.#parts
    let answersOthers = false
    for (let times = 0; !this.#abandoned; times++) {
      const sent = clock.monotonic()
      try {
        const reply = await store.turn(call)
        trouble(undefined)
        return { reply, sent }
      } catch (error) {
        trouble(error)
        if (answersOthers) return undefined
        await this.#pause(afterTrouble(times))
        answersOthers = times >= PATIENCE && (await this.#storeAnswers())
      }
    }
    return undefined
  }

  /** A turn of nothing, in another name so that the answer to the real one stays remembered. */
  async #storeAnswers(): Promise<boolean> {
    const { store, process } = this.#parts
    const nothing = { routes: 0, settle: [], claim: [], budget: 0 }
    return store.turn({ process: `${process}/probe`, request: ++this.#request, ...nothing }).then(
      () => true,
      () => false,
    )
  }

  #begin(reply: TurnReply, sent: Millis, claims: readonly Claim[]): void {
    const { time, flows, begin, crashed } = this.#parts
    time.hear(reply, sent)
    for (const lease of reply.claimed) {
      const flow = flows.find((one) => one.name === lease.flow)
      if (flow === undefined) continue
      const mayRun = this.#slots.taken(lease)
      // As if the store had been asked the moment the claim was sent: by its own clock it was so later, never earlier.
      if (mayRun) begin(lease, flow, sent + lease.until - reply.now)
      else this.settle(lease, released(lease, this.#parts.givenBack(lease.state64)), () => {})
    }
    for (const { run } of reply.crashed) crashed(run)
    for (const { flow: name, due } of reply.heads) {
      const slots = claims.find((one) => one.flow === name)?.slots ?? 0
      const begun = reply.claimed.filter((lease) => lease.flow === name).length
      const flow = flows.find((one) => one.name === name)
      // With no room for more it is asked again when there is some, and permits are not asked for before there is something to do.
      const isFull = slots > 0 && begun === slots && flow !== undefined && !this.#hasRoom(flow)
      this.#deadlines.heard(name, isFull ? undefined : due, slots > 0 && begun === 0, reply.now)
    }
  }
}

function afterTrouble(times: number): Millis {
  return AFTER_TROUBLE[Math.min(times, AFTER_TROUBLE.length - 1)] ?? 1_000
}

/** A second suspect: another flow's claim of the same turn brought the first. */
function released({ lane, token }: Lease, state64: string): Settle {
  const end = { whileRunning: 'window', keep: 0 } as const
  return { lane, token, outcome: { kind: 'released', after: 0, state64 }, attempt: undefined, publish: [], ...end }
}
