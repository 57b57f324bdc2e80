// `Runtime` is a started app: worker, maintenance, schedules and event-loop monitor, which start and stop together.
import type { Millis } from '../clock.ts'
import { DeadLetterNews } from './dead-letter-news.ts'
import { Worker, type WorkerDependencies } from './worker.ts'
import { createMaintenance, type MaintenanceDependencies } from './maintenance.ts'
import type { Settings } from './options.ts'
import { Ticker, type Schedule } from '../publish/cron.ts'
import type { Publisher } from '../publish/publisher.ts'
import { DEAD_LETTER_ALERTS } from '../maintain/dead-letter-alerts.ts'
import { describeLag, LoopLag } from '../maintain/loop-lag.ts'
import { withMinInterval, MaintenanceScheduler, type MaintenanceTask } from '../maintain/maintenance.ts'

export interface RuntimeDependencies
  extends Omit<WorkerDependencies, 'deadLetterNews' | 'onDead' | 'onUnplaced'>, MaintenanceDependencies {
  readonly settings: Settings
  readonly schedules: readonly Schedule[]
  readonly publisher: Publisher
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

  constructor(deps: RuntimeDependencies) {
    const { store, clock, storeClock, publisher, emit } = deps
    this.#deps = deps
    const deadLetterNews = new DeadLetterNews(deps.flows.values(), deps.registry, storeClock)
    this.worker = new Worker({
      ...deps,
      deadLetterNews,
      onDead: () => this.#afterDeath(deadLetterNews),
      onUnplaced: () => this.placeUnroutedSoon(),
    })
    this.#maintenance = createScheduler(deps, [...createMaintenance(deps), ...deps.tasks])
    this.#ticker = new Ticker({
      clock,
      now: () => storeClock.now(),
      publish: (event) => publisher.publish([event]),
      store,
    })
    const onStall = (ms: Millis): void =>
      emit('alert.raised', { alert: 'loop-lag', text: describeLag(ms, this.worker.runsWithin(ms + LAG_WINDOW)) })
    this.#loopLag = new LoopLag(clock, onStall, deps.onLag)
  }

  async start(): Promise<void> {
    // The only step that can fail runs before anything else starts.
    await this.#ticker.start(this.#deps.schedules)
    this.worker.start()
    this.#maintenance.start()
    if (this.#deps.minPollInterval === undefined) this.#loopLag.start()
  }

  async stop(): Promise<void> {
    const { abortTimeout, shutdownTimeout } = this.#deps.settings
    this.#ticker.stop()
    this.#loopLag.stop()
    await this.#maintenance.stop(abortTimeout)
    await this.worker.stop(shutdownTimeout)
  }

  /** `crash` stops as if the process had been killed: it settles nothing and gives nothing back. */
  crash(): void {
    this.#ticker.stop()
    this.worker.crash()
    void this.#maintenance.stop(0)
  }

  #afterDeath({ isWanted }: DeadLetterNews): void {
    if (isWanted) this.placeUnroutedSoon()
    this.#maintenance.runSoon(DEAD_LETTER_ALERTS)
  }

  /** `placeSoon` looks for unrouted events without waiting for the next look. */
  placeUnroutedSoon(): void {
    this.#maintenance.runSoon('placing')
  }
}

function createScheduler(
  { clock, minPollInterval, emit }: RuntimeDependencies,
  tasks: readonly MaintenanceTask[],
): MaintenanceScheduler {
  const spaced = tasks.map((task) => withMinInterval(task, minPollInterval))
  return new MaintenanceScheduler(clock, spaced, (task, failure) => {
    const alert = `maintenance:${task}`
    if (failure === undefined) emit('alert.cleared', { alert, text: 'The task works again.' })
    else emit('alert.raised', { alert, text: failure })
  })
}
