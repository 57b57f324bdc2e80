// An app at work: the engine, the chores, the schedules and the watch over the event loop, begun and ended together.
import type { Clock, Millis } from './clock.ts'
import { Engine } from './engine.ts'
import { housekeeping } from './housekeeping.ts'
import type { Flow } from './model/flow.ts'
import type { AnyListener, OfRun } from './observe/events.ts'
import type { RunLog } from './observe/log.ts'
import type { Settings } from './options.ts'
import { Ticker, type Schedule } from './receive/every.ts'
import type { KnownFlows } from './receive/known-flows.ts'
import { lastTick, setLastTick } from './receive/last-tick.ts'
import type { Publisher } from './receive/publisher.ts'
import type { Routes } from './receive/route.ts'
import type { StoreTime } from './schedule/store-time.ts'
import type { Store } from './store/contract/index.ts'
import type { Placing } from './upkeep/chores.ts'
import { lagText, LoopLag } from './upkeep/loop-lag.ts'
import { calmed, Upkeep, type Chore } from './upkeep/upkeep.ts'

export interface WorkingParts {
  readonly store: Store
  readonly known: KnownFlows
  /** Of all that events are routed by, flows and endpoints: the older of the two (L18). */
  readonly epoch: () => number
  /** Reads both anew. */
  readonly refresh: () => Promise<void>
  readonly clock: Clock
  readonly time: StoreTime
  readonly flows: ReadonlyMap<string, Flow>
  readonly schedules: readonly Schedule[]
  readonly settings: Settings
  readonly publisher: Publisher
  readonly routes: () => Routes
  /** How hard-pressed a flow is now. */
  readonly pressed: (flow: string, level: number) => void
  readonly emit: AnyListener
  readonly log: (run: OfRun) => RunLog
  /** How late timers are, at every look. */
  readonly lagged?: (ms: Millis) => void
  /** Further ones than every app has. */
  readonly chores: readonly Chore[]
  /** Under test: nobody else works on the store, so that chores that look for news can be calm. */
  readonly calm: Millis | undefined
}

/** A run that kept the loop busy may have ended before anybody could look. */
const LAG_AROUND: Millis = 1_000

export class Working {
  readonly #parts: WorkingParts
  readonly engine: Engine
  readonly #upkeep: Upkeep
  readonly #placing: Placing
  readonly #ticker: Ticker
  readonly #lag: LoopLag

  constructor(parts: WorkingParts) {
    const { store, clock, time, settings, publisher, emit, log } = parts
    this.#parts = parts
    this.engine = new Engine({
      store,
      clock,
      time,
      process: settings.process,
      flows: [...parts.flows.values()],
      emit,
      log,
      routes: parts.epoch,
      toPublish: (events, run, from) => publisher.ofRun(events, run, from),
      numbers: settings,
    })
    const { chores, placing } = housekeeping(parts)
    this.#placing = placing
    this.#upkeep = upkeepOf(parts, [...chores, ...parts.chores])
    this.#ticker = new Ticker({
      clock,
      now: () => time.now(),
      publish: (event) => publisher.publish([event]),
      since: (name) => lastTick(store, name),
      ticked: (name, tick) => setLastTick(store, name, tick),
    })
    const lags = (ms: Millis): void =>
      emit('alert.raised', { alert: 'loop-lag', text: lagText(ms, this.engine.runsWithin(ms + LAG_AROUND)) })
    this.#lag = new LoopLag(clock, lags, parts.lagged)
  }

  async start(): Promise<void> {
    // The only step that can fail, before anything else has begun.
    await this.#ticker.start(this.#parts.schedules)
    this.engine.start()
    this.#upkeep.start()
    if (this.#parts.calm === undefined) this.#lag.start()
  }

  async stop(): Promise<void> {
    const { afterAbort, grace } = this.#parts.settings
    this.#ticker.stop()
    this.#lag.stop()
    await this.#upkeep.stop(afterAbort)
    await this.engine.stop(grace)
  }

  /** As if the process had been killed: nothing is settled, nothing given back. */
  crash(): void {
    this.#ticker.stop()
    this.engine.crash()
    void this.#upkeep.stop(0)
  }

  /** Events that could not be routed are to be looked at, all of them if somebody said so. */
  placeSoon(everything: boolean): void {
    if (everything) this.#placing.everything()
    this.#upkeep.soon('placing')
  }
}

function upkeepOf({ clock, calm, emit }: WorkingParts, chores: readonly Chore[]): Upkeep {
  const calmer = chores.map((chore) => calmed(chore, calm))
  return new Upkeep(clock, calmer, (chore, failure) => {
    const alert = `upkeep:${chore}`
    if (failure === undefined) emit('alert.cleared', { alert, text: 'It works again.' })
    else emit('alert.raised', { alert, text: failure })
  })
}
