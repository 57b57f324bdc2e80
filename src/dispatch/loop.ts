// The loop of a process settles ended runs, claims due lanes, and sleeps until the next deadline or a wake-up (L5).
import { messageOf } from '../errors.ts'
import { EventLoopTurn, type Clock, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type {
  ClaimRequest,
  LeasedRun,
  Settlement,
  Store,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../store/contract/index.ts'
import { Deadlines } from './deadlines.ts'
import { PendingSettlement, createRelease, type SettledListener } from './settlements.ts'
import { isRefusal, type FailingClaims } from './failing-claims.ts'
import type { Permits } from './permits.ts'
import { RunCapacity, type ClaimTerms } from './capacity.ts'
import type { StoreClock } from './store-clock.ts'

export interface DispatchLoopDependencies {
  readonly store: Pick<Store, 'settleAndClaim' | 'stats'>
  readonly clock: Clock
  readonly storeClock: StoreClock
  readonly process: string
  readonly flows: readonly Flow[]
  readonly permits: Permits
  readonly claimTerms: () => ClaimTerms
  readonly maxConcurrentRuns: number
  readonly poll: Millis
  /** Frequent wake-ups share one call: without a passed deadline, the loop asks the store at most this often. */
  readonly minWakeUpInterval: Millis
  readonly routesEpoch: () => number
  /** `startRun` starts the run and later calls `settle` or `forget`. `until` is when the lease expires, on the monotonic clock. */
  readonly startRun: (lease: LeasedRun, flow: Flow, until: Millis) => void
  /** `toReleasedState` returns the stored state of a run that is given back. */
  readonly toReleasedState: (state64: string) => string
  readonly onCrashed: (run: string) => void
  readonly failingClaims: FailingClaims
  /** Gets the error of a failed call, and undefined once a call succeeds again. */
  readonly onStoreError: (error: unknown) => void
}

interface TurnResult {
  readonly reply: SettleAndClaimReply
  readonly sent: Millis
}

const REFRESH_AFTER = 1_000
/** The loop retries the claim of a flow whose claims fail this often. */
const RETRY_FAILING_AFTER = 10_000
const BODY_BUDGET = 32 * 1024 * 1024
/** After this many failures the loop checks whether the call itself is at fault. */
const MAX_CALL_FAILURES = 8
/** Fewer settlements than this share of the live runs are few. */
const FEW_SHARE = 1 / 4
/** The loop waits up to this many turns of the event loop. An idle event loop makes them take no time. */
const GATHER_TURNS = 3
const ERROR_DELAYS = [50, 100, 250, 500, 1_000] as const

export class DispatchLoop {
  readonly #deps: DispatchLoopDependencies
  readonly #deadlines: Deadlines
  readonly #capacity: RunCapacity
  readonly #eventLoop = new EventLoopTurn()
  #settlements: PendingSettlement[] = []
  #request = 0
  #isClaiming = true
  #isStopped = false
  #isAbandoned = false
  #wake: () => void = () => {}
  #endDelay: () => void = () => {}
  #askedAt = -Infinity
  #refreshedAt = -Infinity
  /** How many permit requests in a row failed. */
  #permitFailures = 0
  /** The message of the last failed call. */
  #lastError = ''
  #running: Promise<void> | undefined
  #currentTurn: Promise<void> | undefined

  constructor(deps: DispatchLoopDependencies) {
    this.#deps = deps
    this.#deadlines = new Deadlines(deps.flows.map((flow) => flow.name))
    this.#capacity = new RunCapacity(deps.flows, deps.maxConcurrentRuns)
  }

  start(): void {
    this.#running ??= this.#runLoop()
  }

  /** `wakeUp` is a hint that a lane of the flow may be due. */
  wakeUp(flow: string): void {
    this.#changed(flow)
    this.#wake()
  }

  /** A flow whose claims fail waits for its retry time; changes do not shorten it. */
  #changed(flow: string): void {
    if (!this.#deps.failingClaims.has({ flow })) this.#deadlines.markChanged(flow)
  }

  /** `settle` stores the end of a run with the next call, and calls `onSettled` before new runs start. `routes`: see `routesEpoch`. */
  settle(lease: LeasedRun, settle: Settlement, onSettled: SettledListener, routes: number = Infinity): void {
    this.#release(lease)
    if (this.#isAbandoned) return onSettled('lost', [])
    this.#settlements.push(new PendingSettlement(settle, onSettled, routes))
    return this.#wake()
  }

  /** `forget` drops a run that this process must not settle, e.g. after it lost the lease. */
  forget(lease: LeasedRun): void {
    this.#release(lease)
    this.#wake()
  }

  /** After `stopClaiming` resolves, the loop starts no further run. A claim under way may still start runs before that. */
  async stopClaiming(): Promise<void> {
    this.#isClaiming = false
    await this.#currentTurn
  }

  /** `stop` settles the ended runs and stops the loop. */
  async stop(): Promise<void> {
    this.#isClaiming = false
    this.#isStopped = true
    this.#wake()
    await this.#running
  }

  /** `abandon` stops the loop without settling anything. */
  abandon(): void {
    this.#isClaiming = false
    this.#isStopped = true
    this.#isAbandoned = true
    this.#settlements = []
    this.#wake()
    this.#endDelay()
  }

  roomFor(flow: Flow): number {
    return this.#capacity.roomFor(flow)
  }

  /** `isFull` returns whether this process runs as many runs as it may. */
  isFull(): boolean {
    return this.#capacity.isFull
  }

  #release(lease: LeasedRun): void {
    // Only one suspect may run at a time, so its end may give room to every flow.
    const mayOthersContinue = this.#capacity.release(lease)
    if (mayOthersContinue) for (const { name } of this.#deps.flows) this.#changed(name)
    this.#changed(lease.flow)
  }

  async #runLoop(): Promise<void> {
    while (!this.#isAbandoned && (!this.#isStopped || this.#settlements.length > 0)) {
      if (this.#isClaiming && this.#shouldRefresh()) await this.#refreshDeadlines()
      await this.#gatherSettlements()
      if (this.#isAbandoned) return
      const due = this.#isClaiming ? this.#dueFlows() : []
      if (this.#settlements.length === 0 && (due.length === 0 || !this.#mayAsk(due))) await this.#sleep()
      else await (this.#currentTurn = this.#runTurn(due))
    }
  }

  /** `#gatherSettlements` waits briefly while few of many runs have ended: settling one run costs as much as settling ten. */
  async #gatherSettlements(): Promise<void> {
    const areFew = (): boolean =>
      this.#settlements.length > 0 && this.#settlements.length < this.#capacity.inUse * FEW_SHARE
    for (let turns = 0; turns < GATHER_TURNS && areFew(); turns++) await this.#eventLoop.waitForEnd()
  }

  /** An expiring lease sends no hint, so even a busy process checks its stuck flows once per `poll`. */
  #shouldRefresh(): boolean {
    const { clock, flows, poll } = this.#deps
    return clock.monotonic() - this.#refreshedAt >= poll && flows.some(({ name }) => this.#deadlines.isStuck(name))
  }

  /** `#dueFlows` returns the flows that are due and have room for a run. */
  #dueFlows(): readonly Flow[] {
    const now = this.#deps.storeClock.now()
    return this.#capacity
      .flowsInRotation()
      .filter((flow) => this.#hasRoom(flow) && this.#deadlines.isDue(flow.name, now))
  }

  #hasRoom(flow: Flow): boolean {
    const { permits } = this.#deps
    // A flow that may get more permits may have room. The loop requests the permits once the flow is due.
    return this.#capacity.freeFor(flow, permits.canAskMore(flow) ? flow.concurrency : permits.maxRuns(flow)) > 0
  }

  /** A passed deadline never waits; a mere change waits for `minWakeUpInterval`. */
  #mayAsk(due: readonly Flow[]): boolean {
    const { storeClock: time, clock, minWakeUpInterval: minInterval } = this.#deps
    const now = time.now()
    const isNews = due.every((flow) => !this.#deadlines.hasPassed(flow.name, now))
    return !isNews || clock.monotonic() - this.#askedAt >= minInterval
  }

  async #sleep(): Promise<void> {
    const { clock, storeClock: time, flows, poll, minWakeUpInterval: minInterval } = this.#deps
    const woken = Promise.withResolvers<void>()
    this.#wake = woken.resolve
    const open = flows.filter((flow) => this.#hasRoom(flow)).map((flow) => flow.name)
    const isNews = this.#isClaiming && open.some((flow) => this.#deadlines.isChanged(flow))
    const next = this.#isClaiming ? this.#deadlines.next(open) : undefined
    const untilDue = next === undefined ? Infinity : Math.max(0, next - time.now())
    const untilNews = isNews ? Math.max(0, this.#askedAt + minInterval - clock.monotonic()) : Infinity
    const delay = Math.min(untilDue, untilNews, poll)
    let isPoll = false
    const cancel = clock.after(delay, () => {
      isPoll = delay === poll
      woken.resolve()
    })
    await woken.promise
    cancel()
    this.#wake = () => {}
    if (isPoll) await this.#refreshDeadlines()
  }

  /** After a quiet time a wake-up may have been lost, and another process may need the permits that this one does not use. */
  async #refreshDeadlines(): Promise<void> {
    const { store, clock, flows, permits, storeClock: time, onStoreError, failingClaims: failing } = this.#deps
    this.#refreshedAt = clock.monotonic()
    try {
      // `stats` only reads, so an idle process does not touch the disk.
      const onReply = time.startCall()
      const stats = await store.stats()
      onReply(stats)
      onStoreError(undefined)
      for (const { name } of flows)
        if (!failing.has({ flow: name }))
          this.#deadlines.setDue(name, stats.flows.find(({ flow }) => flow === name)?.due)
      await permits.release(flows.filter((flow) => !this.#capacity.isBusy(flow)))
    } catch (error) {
      onStoreError(error)
    }
  }

  async #runTurn(due: readonly Flow[]): Promise<void> {
    const claim =
      due.length === 0 ? [] : await this.#planClaims(due).catch((error: unknown) => this.#onPermitsFailed(due, error))
    const endings = this.#settlements
    this.#settlements = []
    for (const { flow } of claim) this.#deadlines.markAsked(flow)
    if (claim.length > 0) this.#askedAt = this.#deps.clock.monotonic()
    const { failingClaims: failing } = this.#deps
    const together = claim.filter((one) => !failing.has(one))
    if (together.length + endings.length > 0) await this.#runTurnWith(endings, together)
    for (const one of claim) if (failing.has(one) && !together.includes(one)) await this.#claimAlone(one)
  }

  async #runTurnWith(endings: readonly PendingSettlement[], claim: readonly ClaimRequest[]): Promise<void> {
    const result = await this.#settleAndClaim(endings, claim)
    if (this.#isAbandoned) return
    if (result !== undefined) return this.#startClaimed(result.reply, result.sent, claim)
    // A settlement that the store rejects must not block the others, and a rejected claim must not block any settlement.
    if (claim.length > 0 && endings.length > 0) await this.#runTurnWith(endings, [])
    else if (endings.length > 1) for (const ending of endings) await this.#settleAndClaim([ending], [])
    if (claim.length === 1 && endings.length === 0) return this.#onClaimFailed(claim)
    for (const one of claim) await this.#claimAlone(one)
  }

  async #claimAlone(claim: ClaimRequest): Promise<void> {
    const result = await this.#settleAndClaim([], [claim])
    if (this.#isAbandoned) return
    if (result === undefined) this.#onClaimFailed([claim])
    else this.#startClaimed(result.reply, result.sent, [claim])
  }

  #onClaimFailed(claims: readonly ClaimRequest[]): void {
    const { failingClaims: failing, storeClock: time } = this.#deps
    for (const { flow } of claims) {
      failing.markFailed(flow, this.#lastError)
      this.#deadlines.markStuck(flow, time.now() + RETRY_FAILING_AFTER)
    }
  }

  async #settleAndClaim(
    endings: readonly PendingSettlement[],
    claim: readonly ClaimRequest[],
  ): Promise<TurnResult | undefined> {
    const call: SettleAndClaimCall = {
      process: this.#deps.process,
      request: ++this.#request,
      routes: Math.min(this.#deps.routesEpoch(), ...endings.map((ending) => ending.routesEpoch)),
      settle: endings.map((ending) => ending.settle),
      claim,
      budget: BODY_BUDGET,
    }
    const result = await this.#callStore(call)
    const isOver = result !== undefined || this.#isAbandoned || (endings.length === 1 && claim.length === 0)
    if (!isOver) return result
    if (result !== undefined) this.#deps.storeClock.update(result.reply, result.sent)
    const unstored = result?.reply.unstored ?? []
    for (const [at, ending] of endings.entries()) {
      const its = unstored.length === 0 ? unstored : unstored.filter(({ settle }) => settle === at)
      ending.onSettled(result?.reply.settled[at] ?? 'lost', its)
    }
    return result
  }

  /** The loop requests permits only for flows with a passed deadline. For the others it only asks for the next deadline. */
  async #planClaims(due: readonly Flow[]): Promise<readonly ClaimRequest[]> {
    const { permits, storeClock: time, claimTerms } = this.#deps
    const now = time.now()
    const ready = due.filter((flow) => this.#deadlines.hasPassed(flow.name, now))
    await permits.acquire(ready, (flow) => this.#capacity.roomFor(flow))
    this.#permitFailures = 0
    const denied = ready.filter((flow) => permits.maxRuns(flow) === 0)
    // Other processes hold all permits. If they are dead, their permits expire without a hint.
    for (const flow of denied) this.#deadlines.markStuck(flow.name, now + REFRESH_AFTER)
    const asked = due.filter((flow) => !denied.includes(flow))
    return this.#capacity.planClaims(asked, (flow) => permits.maxRuns(flow), claimTerms())
  }

  /** If the request for permits fails, the loop claims nothing but still settles the ended runs. */
  #onPermitsFailed(due: readonly Flow[], error: unknown): readonly ClaimRequest[] {
    this.#deps.onStoreError(error)
    const until = this.#deps.storeClock.now() + errorDelay(this.#permitFailures++)
    for (const flow of due) this.#deadlines.markStuck(flow.name, until)
    return []
  }

  /** `abandon` ends the delay early. */
  async #delay(delay: Millis): Promise<void> {
    const up = Promise.withResolvers<void>()
    const cancel = this.#deps.clock.after(delay, up.resolve)
    this.#endDelay = up.resolve
    await up.promise
    cancel()
  }

  /**
   * `#callStore` repeats the call until the store replies or the loop is abandoned. The store recognises a repeated call by its request
   * number. If the call keeps failing while the store answers other calls, the call itself is at fault and `#callStore` returns
   * undefined. With claims, it does so at the second rejection with the same message, because nothing of the call was written.
   */
  async #callStore(call: SettleAndClaimCall): Promise<TurnResult | undefined> {
    const { store, clock, onStoreError, failingClaims: failing } = this.#deps
    const isKnown = call.settle.length === 0 && call.claim.every((one) => failing.has(one))
    this.#lastError = ''
    let isResponding = false
    for (let times = 0; !this.#isAbandoned; times++) {
      const sent = clock.monotonic()
      try {
        const reply = await store.settleAndClaim(call)
        onStoreError(undefined)
        return { reply, sent }
      } catch (error) {
        const message = messageOf(error)
        const isSame = isRefusal(error) && (message === this.#lastError || isKnown)
        this.#lastError = message
        if (isKnown && isSame) return undefined
        onStoreError(error)
        if (isResponding) return undefined
        await this.#delay(errorDelay(times))
        const isEnough = times >= MAX_CALL_FAILURES || (isSame && call.claim.length > 0)
        isResponding = isEnough && (await this.#isStoreResponding())
      }
    }
    return undefined
  }

  /** The probe is an empty call under another process name, so that the store still remembers the reply to the real call. */
  async #isStoreResponding(): Promise<boolean> {
    const { store, process } = this.#deps
    const nothing = { routes: 0, settle: [], claim: [], budget: 0 }
    return store.settleAndClaim({ process: `${process}/probe`, request: ++this.#request, ...nothing }).then(
      () => true,
      () => false,
    )
  }

  #startClaimed(reply: SettleAndClaimReply, sent: Millis, claims: readonly ClaimRequest[]): void {
    const { flows, startRun, onCrashed } = this.#deps
    for (const lease of reply.claimed) {
      const flow = flows.find((one) => one.name === lease.flow)
      if (flow === undefined) continue
      const mayRun = this.#capacity.take(lease)
      // Counting from when the claim was sent is safe: the store granted the lease at that time or later, never earlier.
      if (mayRun) startRun(lease, flow, sent + lease.until - reply.now)
      else this.settle(lease, createRelease(lease, this.#deps.toReleasedState(lease.stateBase64)), () => {})
    }
    for (const { run } of reply.crashed) onCrashed(run)
    for (const { flow: name, due } of reply.nextDeadlines) {
      this.#deps.failingClaims.markWorking(name)
      const slots = claims.find((one) => one.flow === name)?.maxRuns ?? 0
      const begun = reply.claimed.filter((lease) => lease.flow === name).length
      const flow = flows.find((one) => one.name === name)
      // A full flow is asked again once it has room, and it requests permits only once it is due.
      const isFull = slots > 0 && begun === slots && flow !== undefined && !this.#hasRoom(flow)
      this.#deadlines.recordReply(name, isFull ? undefined : due, slots > 0 && begun === 0, reply.now)
    }
  }
}

const errorDelay = (times: number): Millis => ERROR_DELAYS[Math.min(times, ERROR_DELAYS.length - 1)] ?? 1_000
