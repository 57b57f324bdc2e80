// A process at work: what is claimed is run, what has ended is settled, and both are told to whoever listens.
import { randomBytes } from 'node:crypto'
import { BusyMap } from './busy-map.ts'
import { within, type Clock, type Millis } from './clock.ts'
import type { EventInput } from './model/event-input.ts'
import type { Flow } from './model/flow.ts'
import type { LaneId } from './model/identity.ts'
import type { AnyListener, OfRun } from './observe/events.ts'
import type { Settings } from './options.ts'
import { attempt, type Attempted, type AttemptParts, type ToPublish } from './run/attempt.ts'
import { Heartbeat, marginOf } from './run/heartbeat.ts'
import { Lingering } from './run/lingering.ts'
import { LiveRun } from './run/live-run.ts'
import { notPutOff } from './run/kept.ts'
import type { RunLog } from './observe/log.ts'
import type { StoreTime } from './schedule/store-time.ts'
import { Loop, type Told } from './schedule/loop.ts'
import { Permits } from './schedule/permits.ts'
import type { Hint, Lease, Settle, Store } from './store/contract/index.ts'
import { emitWithFacts, type RunFacts } from './observe/tallies-facts.ts'
import { tellEnd } from './observe/tell-end.ts'

export interface EngineParts {
  readonly store: Store
  readonly clock: Clock
  readonly time: StoreTime
  readonly process: string
  readonly flows: readonly Flow[]
  readonly emit: AnyListener
  readonly log: (run: OfRun) => RunLog
  readonly routes: () => number
  readonly toPublish: (events: readonly EventInput[], run: string, from: number) => ToPublish
  readonly numbers: Settings
}

/** How long a run is put off whose events the store did not give. */
const UNREAD_FOR: Millis = 5_000
const ENDED_KEPT = 20
const CRASHED_EVENTS_READ = 100
const STILL_RUNS = 'Its earlier handler has not returned in this process.'

/** A class for the reason of `HandledRun`. */
class Running {
  readonly live: LiveRun
  /** When it is settled. */
  readonly over: Promise<void>

  constructor(live: LiveRun, over: Promise<void>) {
    this.live = live
    this.over = over
  }
}

export class Engine {
  readonly #parts: EngineParts
  readonly #loop: Loop
  readonly #heartbeat: Heartbeat
  readonly #permits: Permits
  /** By token, until they are settled. */
  readonly #running = new BusyMap<number, Running>()
  /** By lane, until the handler has returned or its run is over. */
  readonly #atWork = new BusyMap<LaneId, LiveRun>()
  readonly #lingering: Lingering
  #troubleSince: Millis | undefined
  #deaf: () => void = () => {}
  readonly #ofAttempts: AttemptParts
  readonly #ended: { readonly lease: Lease; readonly at: Millis }[] = []

  constructor(parts: EngineParts) {
    const { store, clock, process, flows, numbers } = parts
    const { lease, heartbeat, runsAtOnce, poll } = numbers
    this.#parts = parts
    this.#lingering = new Lingering(parts.emit, (lane) => this.#runNow(lane))
    this.#permits = new Permits({ store, clock, process, lease })
    this.#heartbeat = new Heartbeat({
      store,
      clock,
      lease,
      every: heartbeat,
      before: () =>
        this.#permits.renew(
          (flow) => this.isBusy(flow),
          flows,
          (flow) => this.#loop.roomFor(flow),
        ),
      mayRenew: (run) => this.#permits.outlasts(run.lease.flow),
    })
    this.#ofAttempts = {
      clock,
      storeNow: () => parts.time.now(),
      againFor: numbers.againFor,
      chance: () => randomBytes(4).readUInt32LE() / 2 ** 32,
      log: (run) => parts.log(toldOf(run.lease)),
      commit: (run) => this.#heartbeat.commit(run),
      bodies: async (events) => (await store.bodies({ events })).bodies,
      toPublish: parts.toPublish,
    }
    this.#loop = new Loop({
      store,
      clock,
      process,
      flows,
      lease,
      poll,
      newsApart: numbers.newsApart,
      time: parts.time,
      permits: this.#permits,
      atOnce: runsAtOnce,
      routes: parts.routes,
      begin: (one, flow, until) => this.#begin(one, flow, until),
      givenBack: notPutOff,
      crashed: (run) => void this.#crashed(run).catch((error: unknown) => this.#trouble(error)),
      trouble: (error) => this.#trouble(error),
    })
  }

  start(): void {
    this.#deaf = this.#parts.store.listen((hint) => this.#hear(hint))
    this.#loop.start()
  }

  get live(): readonly LiveRun[] {
    return Array.from(this.#running.values(), ({ live }) => live)
  }

  /** What a run of this process waits for, until when by the store's clock. */
  waitingFor(run: string): { readonly limit: string; readonly until: Millis } | undefined {
    const waits = this.live.find(({ lease }) => lease.run === run)?.longestWait
    if (waits === undefined) return undefined
    return {
      limit: waits.limit,
      until: this.#parts.time.now() + Math.max(0, waits.until - this.#parts.clock.monotonic()),
    }
  }

  /** Runs that are live, or have ended within the last so many milliseconds. */
  runsWithin(ms: Millis): readonly Lease[] {
    const since = this.#parts.clock.monotonic() - ms
    const ended = this.#ended.filter(({ at }) => at >= since).map(({ lease }) => lease)
    return [...this.live.map(({ lease }) => lease), ...ended]
  }

  isBusy(flow: string): boolean {
    return this.live.some((run) => run.lease.flow === flow)
  }

  /** Whether an earlier handler of the lane has not returned here, though its run is over. */
  lingers(lane: string): boolean {
    return this.#lingering.has(lane)
  }

  isFull(): boolean {
    return this.#loop.isFull()
  }

  /** L13: begins nothing, lets runs go on for the grace time, aborts them, and gives back those that then return. */
  async stop(grace: Millis): Promise<void> {
    await within(this.#parts.clock, this.#loop.stopClaiming(), this.#parts.numbers.afterAbort)
    await this.#allEnded(grace)
    for (const run of this.live) run.abort('stop')
    await this.#allEnded(this.#parts.numbers.afterAbort)
    this.#deaf()
    // Who has not returned by now may do so any time: nothing it says counts, and its lease is not renewed.
    for (const run of this.live) this.#giveUp(run)
    // A store that does not answer must not keep the process: leases lapse, permits too.
    await within(this.#parts.clock, this.#loop.stop(), this.#parts.numbers.afterAbort)
    const released = this.#permits.release(this.#parts.flows).catch(() => {})
    await within(this.#parts.clock, released, this.#parts.numbers.afterAbort)
    this.#loop.abandon()
  }

  /** Leaves everything as it is: what it ran comes back when its leases are over. */
  crash(): void {
    this.#deaf()
    this.#loop.abandon()
    for (const run of this.live) this.#giveUp(run)
  }

  #giveUp(run: LiveRun): void {
    this.#heartbeat.remove(run)
    run.abort('lost')
  }

  /** All runs have ended, or the time is up. */
  async #allEnded(most: Millis): Promise<void> {
    const all = Array.from(this.#running.values(), ({ over }) => over)
    if (all.length > 0) await within(this.#parts.clock, Promise.all(all), most)
  }

  #hear(hint: Hint): void {
    if (hint.kind === 'due') this.#loop.news(hint.flow)
    else if (hint.kind === 'cancel') this.#heartbeat.mayBeCancelled(hint.token)
  }

  #begin(lease: Lease, flow: Flow, until: Millis): void {
    const { clock, emit, numbers } = this.#parts
    const told = toldOf(lease)
    const when = { due: lease.due, late: Math.max(0, this.#parts.time.now() - lease.due) }
    emit('lane.due', { flow: lease.flow, key: lease.key, ...when })
    emit('run.claimed', { ...told, ...when })
    // The event loop stood still for longer than a lease, and what it held is claimed before anybody could tell it.
    const overtaken = this.#atWork.get(lease.lane)
    overtaken?.abort('lost')
    if (overtaken !== undefined || this.#lingering.has(lease.lane))
      return this.#putOff(lease, flow, this.#lingering.putOff(lease), STILL_RUNS)
    const live = new LiveRun(lease, clock, until - marginOf(numbers.lease))
    this.#heartbeat.add(live)
    this.#atWork.set(lease.lane, live)
    emitWithFacts(emit, 'run.started', told, { lease, outcome: undefined })
    const over = this.#run(live, flow).finally(() => this.#running.delete(lease.token))
    this.#running.set(lease.token, new Running(live, over))
  }

  async #run(live: LiveRun, flow: Flow): Promise<void> {
    const attempted = await this.#attempt(live, flow)
    this.#atWork.delete(live.lease.lane)
    this.#heartbeat.remove(live)
    this.#ended.push({ lease: live.lease, at: this.#parts.clock.monotonic() })
    if (this.#ended.length > ENDED_KEPT) this.#ended.shift()
    if (attempted === undefined) return this.#putOff(live.lease, flow, UNREAD_FOR, 'Its events could not be read.')
    if (attempted.handler !== undefined) this.#lingering.add(live.lease, attempted.handler)
    await this.#end(live, attempted)
  }

  /** Undefined: it could not even begin. */
  async #attempt(live: LiveRun, flow: Flow): Promise<Attempted | undefined> {
    try {
      return await attempt(live, flow, this.#ofAttempts)
    } catch (error) {
      this.#trouble(error)
      return undefined
    }
  }

  async #end(live: LiveRun, attempted: Attempted): Promise<void> {
    const { emit, clock } = this.#parts
    const told = toldOf(live.lease)
    if (attempted.kind === 'lost') {
      this.#loop.forget(live.lease)
      emit('run.lost', { ...told, ms: clock.monotonic() - live.began, why: 'Its lease ended before it did.' })
      return
    }
    await new Promise<void>((resolve) => {
      const toldOfEnd: Told = (settled, keptOut) => {
        tellEnd({ ...attempted, lease: live.lease, told, settled, emit })
        if (settled === 'ok') attempted.tell(keptOut)
        resolve()
      }
      this.#loop.settle(live.lease, attempted.settle, toldOfEnd, attempted.routes)
    })
  }

  #runNow(lane: LaneId): void {
    const call = { what: 'lanes', ids: [lane], act: { kind: 'run-now' } } as const
    this.#parts.store.steer(call).catch((error: unknown) => this.#trouble(error))
  }

  #putOff(lease: Lease, flow: Flow, after: Millis, why: string): void {
    const { emit } = this.#parts
    const outcome = { kind: 'released', after, state64: notPutOff(lease.state64) } as const
    const end = { whileRunning: flow.whileRunning === 'requeue' ? 'requeue' : 'window', keep: 0 } as const
    const settle: Settle = { lane: lease.lane, token: lease.token, outcome, attempt: undefined, publish: [], ...end }
    this.#loop.settle(lease, settle, (settled) => {
      if (settled === 'ok') emit('run.again', { ...toldOf(lease), ms: 0, after, why })
    })
  }

  async #crashed(id: string): Promise<void> {
    const { item } = await this.#parts.store.get({ kind: 'dead', id })
    if (item === undefined) return
    const { flow, key, tenant, tries, lapses, events, lane } = item
    const error = `Its process died, or was lost, ${lapses} times.`
    const told = { flow, key, tenant, run: id, attempt: tries + 1, events: events.length, ms: 0, error }
    const outcome = { kind: 'dead', reason: item.reason, block: item.blocks } as const
    const lease = { lane, flow, tries, lapses, rank: 0, letter: false, events: await this.#eventsOf(events) } as const
    emitWithFacts(this.#parts.emit, 'run.dead', told, { lease, outcome })
  }

  /** Only for figures: of very many, the first; of a store that does not answer, none. */
  async #eventsOf(ids: readonly string[]): Promise<RunFacts['lease']['events']> {
    const { store } = this.#parts
    const read = ids.slice(0, CRASHED_EVENTS_READ).map((id) => store.get({ kind: 'events', id }))
    const found = await Promise.all(read).catch(() => [])
    return found.flatMap(({ item }) => item ?? [])
  }

  #trouble(error: unknown): void {
    const { emit, clock } = this.#parts
    if (error === undefined) {
      if (this.#troubleSince !== undefined) emit('store.found', { ms: clock.monotonic() - this.#troubleSince })
      this.#troubleSince = undefined
    } else if (this.#troubleSince === undefined) {
      this.#troubleSince = clock.monotonic()
      emit('store.lost', { error: error instanceof Error ? error.message : 'The store failed.' })
    }
  }
}

function toldOf(lease: Lease): OfRun {
  const { flow, key, tenant, run, tries, events } = lease
  return { flow, key, tenant, run, attempt: tries + 1, events: events.length }
}
