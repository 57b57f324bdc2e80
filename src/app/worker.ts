// `Worker` runs claimed lanes, settles ended runs, and emits events for both.
import { randomBytes } from 'node:crypto'
import { ChurnMap } from '../churn-map.ts'
import { waitAtMost, type Clock, type Millis } from '../clock.ts'
import type { Flow } from '../model/flow.ts'
import type { LaneId } from '../model/identity.ts'
import type { AnyListener, RunPayload } from '../observe/emitter.ts'
import type { DeadLetterNews } from './dead-letter-news.ts'
import type { Settings } from './options.ts'
import { assertDefinedEvents } from '../publish/publish.ts'
import { Attempt, type AttemptResult, type AttemptDependencies } from '../run/attempt.ts'
import { Heartbeat, leaseMargin } from '../run/heartbeat.ts'
import { LingeringHandlers } from '../run/lingering.ts'
import { LiveRun } from '../run/live-run.ts'
import { clearDeferral } from '../run/live-run.ts'
import type { RunLog } from '../observe/log/log.ts'
import type { StoreClock } from '../dispatch/store-clock.ts'
import type { SettledListener } from '../dispatch/settlements.ts'
import { FailingClaims } from '../dispatch/failing-claims.ts'
import { DispatchLoop } from '../dispatch/loop.ts'
import { Permits } from '../dispatch/permits.ts'
import type { Hint, LeasedRun, Settlement, Store } from '../store/contract/index.ts'
import { emitWithFacts, type RunFacts } from '../observe/stats/run-facts.ts'
import { emitRunEnd } from '../observe/run-ended.ts'

export interface WorkerDependencies {
  readonly store: Store
  readonly clock: Clock
  readonly storeClock: StoreClock
  readonly flows: ReadonlyMap<string, Flow>
  readonly emit: AnyListener
  readonly log: (run: RunPayload) => RunLog
  readonly routesEpoch: () => number
  readonly preparePublication: AttemptDependencies['preparePublication']
  readonly settings: Settings
  readonly deadLetterNews: DeadLetterNews
  /** Called once a dead letter is stored. */
  readonly onDead: () => void
  /** Called after a run whose events were stored without placements, because the routes had changed since it ended. */
  readonly onUnplaced: () => void
}

/** How long a run is deferred if the store returned none of its events. */
const UNREADABLE_DELAY: Millis = 5_000
const MAX_ENDED_KEPT = 20
const MAX_CRASHED_EVENTS = 100
const STILL_RUNNING = 'Its earlier handler has not returned in this process.'

export class Worker {
  readonly #deps: WorkerDependencies
  readonly #flows: readonly Flow[]
  readonly #loop: DispatchLoop
  readonly #failingClaims: FailingClaims
  readonly #heartbeat: Heartbeat
  readonly #permits: Permits
  /** How many runs have started and are not settled yet. */
  #unsettled = 0
  /** Called when all runs are settled. */
  #onIdle: () => void = () => {}
  /** The runs by lane, until the handler returns or its run ends. */
  readonly #runsByLane = new ChurnMap<LaneId, LiveRun>()
  readonly #lingering: LingeringHandlers
  #failingSince: Millis | undefined
  #unsubscribe: () => void = () => {}
  readonly #attemptDependencies: AttemptDependencies
  readonly #recentlyEnded: { readonly lease: LeasedRun; readonly at: Millis }[] = []

  constructor(deps: WorkerDependencies) {
    const { store, clock, storeClock, emit, log, preparePublication, routesEpoch, settings } = deps
    const { lease, heartbeat, process } = settings
    const flows = (this.#flows = [...deps.flows.values()])
    this.#deps = deps
    this.#lingering = new LingeringHandlers(emit, (lane) => this.#runNow(lane))
    this.#failingClaims = new FailingClaims({
      raise: (alert) => emit('alert.raised', alert),
      clear: (alert) => emit('alert.cleared', alert),
    })
    this.#permits = new Permits({ store, clock, process, lease })
    this.#heartbeat = new Heartbeat({
      store,
      clock,
      lease,
      every: heartbeat,
      beforeRenew: () =>
        this.#permits.renew(
          (flow) => this.isBusy(flow),
          flows,
          (flow) => this.#loop.roomFor(flow),
        ),
      mayRenew: (run) => this.#permits.outlastsRun(run.lease.flow),
    })
    this.#attemptDependencies = {
      clock,
      storeTime: () => storeClock.now(),
      snoozeLimit: settings.snoozeLimit,
      random: () => randomBytes(4).readUInt32LE() / 2 ** 32,
      log: (run) => log(toRunPayload(run.lease)),
      commit: (run) => this.#heartbeat.commit(run),
      readBodies: async (events) => (await store.readBodies({ events })).bodies,
      assertPublishable: (event) => assertDefinedEvents([event], { flows }),
      preparePublication,
      readDeathNotice: () => deps.deadLetterNews.readNotice(),
    }
    this.#loop = new DispatchLoop({
      store,
      clock,
      process,
      flows,
      claimTerms: () => ({ lease, announceDeadAfter: deps.deadLetterNews.notice }),
      poll: settings.poll,
      minWakeUpInterval: settings.minWakeUpInterval,
      storeClock,
      permits: this.#permits,
      failingClaims: this.#failingClaims,
      maxConcurrentRuns: settings.maxConcurrentRuns,
      routesEpoch,
      startRun: (one, flow, until) => this.#startRun(one, flow, until),
      toReleasedState: clearDeferral,
      onCrashed: (run) => {
        deps.onDead()
        void this.#emitCrashedRun(run).catch((error: unknown) => this.#onStoreError(error))
      },
      onStoreError: (error) => this.#onStoreError(error),
    })
  }

  start(): void {
    this.#unsubscribe = this.#deps.store.listen((hint) => this.#onHint(hint))
    this.#loop.start()
  }

  get live(): readonly LiveRun[] {
    return [...this.#heartbeat.live]
  }

  /** Returns what a run of this process waits for, and until when on the store's clock. */
  findSlotWait(run: string): { readonly limit: string; readonly until: Millis } | undefined {
    const waits = this.live.find(({ lease }) => lease.runId === run)?.longestWait
    if (waits === undefined) return undefined
    return {
      limit: waits.limit,
      until: this.#deps.storeClock.now() + Math.max(0, waits.until - this.#deps.clock.monotonic()),
    }
  }

  /** Returns the runs that are live or ended within the last `ms` milliseconds. */
  runsWithin(ms: Millis): readonly LeasedRun[] {
    const since = this.#deps.clock.monotonic() - ms
    const ended = this.#recentlyEnded.filter(({ at }) => at >= since).map(({ lease }) => lease)
    return [...this.live.map(({ lease }) => lease), ...ended]
  }

  isBusy(flow: string): boolean {
    return this.live.some((run) => run.lease.flow === flow)
  }

  /** Whether an earlier handler of the lane still works in this process although its run ended. */
  hasLingeringHandler(lane: string): boolean {
    return this.#lingering.has(lane)
  }

  isFull(): boolean {
    return this.#loop.isFull()
  }

  /** Returns why this process cannot claim runs of the flow; undefined if it can. */
  claimError(flow: string): string | undefined {
    return this.#failingClaims.errorOf(flow)
  }

  /** L13: starts nothing, waits for runs for `shutdownTimeout`, aborts them, and gives back the ones that then return. */
  async stop(grace: Millis): Promise<void> {
    await waitAtMost(this.#deps.clock, this.#loop.stopClaiming(), this.#deps.settings.abortTimeout)
    await this.#waitForRuns(grace)
    for (const run of this.live) run.abort('stop')
    await this.#waitForRuns(this.#deps.settings.abortTimeout)
    this.#unsubscribe()
    // A handler that has not returned by now may return later. Its result does not count and its lease is not renewed.
    for (const run of this.live) this.#abandon(run)
    // An unreachable store must not keep the process alive. Leases and permits expire by themselves.
    await waitAtMost(this.#deps.clock, this.#loop.stop(), this.#deps.settings.abortTimeout)
    const released = this.#permits.release(this.#flows).catch(() => {})
    await waitAtMost(this.#deps.clock, released, this.#deps.settings.abortTimeout)
    this.#loop.abandon()
  }

  /** Leaves everything as it is: the runs become due again when their leases expire. */
  crash(): void {
    this.#unsubscribe()
    this.#loop.abandon()
    for (const run of this.live) this.#abandon(run)
  }

  #abandon(run: LiveRun): void {
    this.#heartbeat.remove(run)
    run.abort('lost')
  }

  /** Resolves when all runs are settled or the time is up. */
  async #waitForRuns(most: Millis): Promise<void> {
    if (this.#unsettled === 0) return
    const idle = Promise.withResolvers<void>()
    this.#onIdle = idle.resolve
    await waitAtMost(this.#deps.clock, idle.promise, most)
  }

  #onHint(hint: Hint): void {
    if (hint.kind === 'due') this.#loop.wakeUp(hint.flow)
    else if (hint.kind === 'cancel') this.#heartbeat.checkCancelled(hint.token)
  }

  #startRun(lease: LeasedRun, flow: Flow, until: Millis): void {
    const { clock, emit, settings } = this.#deps
    const payload = toRunPayload(lease)
    const { due } = lease
    const late = Math.max(0, this.#deps.storeClock.now() - due)
    emit('lane.due', { flow: lease.flow, key: lease.key, due, late })
    emit('run.claimed', { ...payload, due, late })
    // The event loop was blocked for longer than a lease, and this process claims its own run before it noticed the loss.
    const overtaken = this.#runsByLane.get(lease.lane)
    overtaken?.abort('lost')
    if (overtaken !== undefined || this.#lingering.has(lease.lane))
      return this.#deferRun(lease, this.#lingering.deferLane(lease), STILL_RUNNING)
    const live = new LiveRun(lease, clock, until - leaseMargin(settings.lease))
    this.#heartbeat.add(live)
    this.#runsByLane.set(lease.lane, live)
    this.#unsettled++
    emitWithFacts(emit, 'run.started', payload, { lease, outcome: undefined })
    new Attempt(live, flow, this.#attemptDependencies, (result) => this.#onAttempted(live, payload, result)).start()
  }

  #onAttempted(live: LiveRun, payload: RunPayload, result: AttemptResult): void {
    const { lease } = live
    const { clock } = this.#deps
    this.#runsByLane.delete(lease.lane)
    this.#heartbeat.remove(live)
    this.#recentlyEnded.push({ lease, at: clock.monotonic() })
    if (this.#recentlyEnded.length > MAX_ENDED_KEPT) this.#recentlyEnded.shift()
    if (result.kind === 'ended') return this.#settleRun(live, payload, result)
    this.#onRunSettled()
    if (result.kind === 'failed') {
      this.#onStoreError(result.error)
      return this.#deferRun(lease, UNREADABLE_DELAY, 'Its events could not be read.')
    }
    if (result.handler !== undefined) this.#lingering.add(lease, result.handler)
    this.#loop.forget(lease)
    const ms = clock.monotonic() - live.startedAt
    this.#deps.emit('run.lost', { ...payload, ms, why: 'Its lease expired before it ended.' })
  }

  #settleRun({ lease }: LiveRun, payload: RunPayload, ended: Extract<AttemptResult, { kind: 'ended' }>): void {
    const { emit, storeClock, onUnplaced, onDead } = this.#deps
    const { settle, routesEpoch, handler } = ended
    if (handler !== undefined) this.#lingering.add(lease, handler)
    const onSettled: SettledListener = (settled, unstored) => {
      emitRunEnd({ ...ended, lease, payload, settled, emit })
      if (settled === 'ok') ended.onSettled(unstored)
      if (settle.publish.length > 0 && routesEpoch < storeClock.routesEpoch) onUnplaced()
      if (settled === 'ok' && settle.announceDeadAfter !== undefined) onDead()
      this.#onRunSettled()
    }
    this.#loop.settle(lease, settle, onSettled, routesEpoch)
  }

  #onRunSettled(): void {
    if (--this.#unsettled === 0) this.#onIdle()
  }

  #runNow(lane: LaneId): void {
    const call = { what: 'lanes', ids: [lane], act: { kind: 'run-now' } } as const
    this.#deps.store.steer(call).catch((error: unknown) => this.#onStoreError(error))
  }

  #deferRun(lease: LeasedRun, after: Millis, why: string): void {
    const settle: Settlement = {
      lane: lease.lane,
      token: lease.token,
      outcome: { kind: 'released', after, state64: clearDeferral(lease.stateBase64) },
      attempt: undefined,
      publish: [],
      // The run keeps its lane, so nothing waits for its end yet.
      whileRunning: 'window',
      keep: 0,
    }
    this.#loop.settle(lease, settle, (settled) => {
      if (settled === 'ok') this.#deps.emit('run.deferred', { ...toRunPayload(lease), ms: 0, after, why })
    })
  }

  async #emitCrashedRun(id: string): Promise<void> {
    const { item } = await this.#deps.store.get({ kind: 'dead', id })
    if (item === undefined) return
    const { flow, key, tenant, tries, lapses, lane } = item
    const error = `Its process crashed or lost it ${lapses} times.`
    const payload = { flow, key, tenant, run: id, attempt: tries + 1, events: item.events.length, ms: 0, error }
    const outcome = { kind: 'dead', reason: item.reason, block: item.blocks } as const
    const events = await this.#readEvents(item.events)
    const lease = { lane, flow, tries, lapses, rank: 0, isDeadLetter: false, events } as const
    emitWithFacts(this.#deps.emit, 'run.dead', payload, { lease, outcome })
  }

  /** Used for stats only: it counts at most the first of very many, and none if the store does not answer. */
  async #readEvents(ids: readonly string[]): Promise<RunFacts['lease']['events']> {
    const { store } = this.#deps
    const read = ids.slice(0, MAX_CRASHED_EVENTS).map((id) => store.get({ kind: 'events', id }))
    const found = await Promise.all(read).catch(() => [])
    return found.flatMap(({ item }) => item ?? [])
  }

  #onStoreError(error: unknown): void {
    const { emit, clock } = this.#deps
    if (error === undefined) {
      if (this.#failingSince !== undefined) emit('store.found', { ms: clock.monotonic() - this.#failingSince })
      this.#failingSince = undefined
    } else if (this.#failingSince === undefined) {
      this.#failingSince = clock.monotonic()
      emit('store.lost', { error: error instanceof Error ? error.message : 'The store failed.' })
    }
  }
}

function toRunPayload(lease: LeasedRun): RunPayload {
  const { flow, key, tenant, runId, tries, events } = lease
  return { flow, key, tenant, run: runId, attempt: tries + 1, events: events.length }
}
