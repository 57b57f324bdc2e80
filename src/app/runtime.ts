// `Runtime` is a started app: worker, maintenance, schedules and event-loop monitor, which start and stop together.
import type { Clock, Millis } from '../clock.ts'
import { Worker } from './worker.ts'
import { createMaintenance } from './maintenance.ts'
import type { Flow } from '../model/flow.ts'
import type { AnyListener, RunPayload } from '../observe/emitter.ts'
import type { RunLog } from '../observe/log/log.ts'
import type { Settings } from './options.ts'
import { Ticker, type Schedule } from '../publish/cron.ts'
import type { FlowRegistry } from '../flow/registry.ts'
import { readLastTick, writeLastTick } from '../publish/last-tick.ts'
import type { Publisher } from '../publish/publisher.ts'
import type { Routes } from '../publish/route.ts'
import type { StoreClock } from '../dispatch/store-clock.ts'
import type { Store } from '../store/contract/index.ts'
import { describeLag, LoopLag } from '../maintain/loop-lag.ts'
import { withMinInterval, MaintenanceScheduler, type MaintenanceTask } from '../maintain/maintenance.ts'

export interface RuntimeDependencies {
  readonly store: Store
  readonly registry: FlowRegistry
  /** The older epoch of flows and endpoints, which route events (L18). */
  readonly routesEpoch: () => number
  /** Reads both again. */
  readonly refreshRoutes: () => Promise<void>
  readonly clock: Clock
  readonly storeClock: StoreClock
  readonly flows: ReadonlyMap<string, Flow>
  readonly schedules: readonly Schedule[]
  readonly settings: Settings
  readonly publisher: Publisher
  readonly routes: () => Routes
  /** Gets the pressure level of a flow. */
  readonly onPressure: (flow: string, level: number) => void
  readonly emit: AnyListener
  readonly log: (run: RunPayload) => RunLog
  /** Gets each measured lag of the event loop. */
  readonly onLag?: (ms: Millis) => void
  /** Maintenance tasks besides the ones of every app. */
  readonly tasks: readonly MaintenanceTask[]
  /** Under test, no other process uses the store, so tasks that poll for changes may run rarely. */
  readonly minPollInterval: Millis | undefined
}

/** A run that blocked the event loop may have ended before the monitor could look. */
const LAG_WINDOW: Millis = 1_000

export class Runtime {
  readonly #deps: RuntimeDependencies
  readonly worker: Worker
  readonly #maintenance: MaintenanceScheduler
  readonly #ticker: Ticker
  readonly #loopLag: LoopLag

  constructor(parts: RuntimeDependencies) {
    const { store, clock, storeClock: time, settings, publisher, emit, log } = parts
    this.#deps = parts
    this.worker = new Worker({
      store,
      clock,
      storeClock: time,
      process: settings.process,
      flows: [...parts.flows.values()],
      emit,
      log,
      routesEpoch: parts.routesEpoch,
      toPublish: (events, run, from) => publisher.prepareForRun(events, run, from),
      settings: settings,
    })
    this.#maintenance = createScheduler(parts, [...createMaintenance(parts), ...parts.tasks])
    this.#ticker = new Ticker({
      clock,
      now: () => time.now(),
      publish: (event) => publisher.publish([event]),
      readLastTick: (name) => readLastTick(store, name),
      writeLastTick: (name, tick) => writeLastTick(store, name, tick),
    })
    const lags = (ms: Millis): void =>
      emit('alert.raised', { alert: 'loop-lag', text: describeLag(ms, this.worker.runsWithin(ms + LAG_WINDOW)) })
    this.#loopLag = new LoopLag(clock, lags, parts.onLag)
  }

  async start(): Promise<void> {
    // The only step that can fail runs before anything else starts.
    await this.#ticker.start(this.#deps.schedules)
    this.worker.start()
    this.#maintenance.start()
    if (this.#deps.minPollInterval === undefined) this.#loopLag.start()
  }

  async stop(): Promise<void> {
    const { abortTimeout: afterAbort, shutdownTimeout: grace } = this.#deps.settings
    this.#ticker.stop()
    this.#loopLag.stop()
    await this.#maintenance.stop(afterAbort)
    await this.worker.stop(grace)
  }

  /** `crash` stops as if the process had been killed: it settles nothing and gives nothing back. */
  crash(): void {
    this.#ticker.stop()
    this.worker.crash()
    void this.#maintenance.stop(0)
  }

  /** `placeSoon` looks for unrouted events without waiting for the next look. */
  placeUnroutedSoon(): void {
    this.#maintenance.runSoon('placing')
  }
}

function createScheduler(
  { clock, minPollInterval: calm, emit }: RuntimeDependencies,
  chores: readonly MaintenanceTask[],
): MaintenanceScheduler {
  const calmer = chores.map((chore) => withMinInterval(chore, calm))
  return new MaintenanceScheduler(clock, calmer, (chore, failure) => {
    const alert = `upkeep:${chore}`
    if (failure === undefined) emit('alert.cleared', { alert, text: 'It works again.' })
    else emit('alert.raised', { alert, text: failure })
  })
}
