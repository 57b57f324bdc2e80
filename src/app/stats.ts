// `AppStats` connects the stats of an app: counters from the start, stats over a window, metrics, and the final write on stop.
import type { Millis } from '../clock.ts'
import { Metrics, type MetricsDependencies } from '../observe/metrics/metrics.ts'
import { StatsRecorder } from '../observe/stats/recorder.ts'
import type { Store } from '../store/contract/index.ts'
import {
  collectStats,
  readStats,
  type CollectedStats,
  type StatsResult,
  type StatsOptions,
  type StatsDependencies,
} from '../admin/stats.ts'

export class AppStats {
  readonly #deps: MetricsDependencies
  readonly #recorder: StatsRecorder
  readonly #metrics: Metrics

  constructor(parts: MetricsDependencies) {
    this.#deps = parts
    this.#recorder = new StatsRecorder(parts)
    this.#metrics = new Metrics(parts)
  }

  readonly stats = (asked?: StatsOptions): Promise<StatsResult> => readStats(this.#statsDependencies, asked)

  /** Reads stats over several windows at once. */
  readonly collect = (window: Millis): Promise<CollectedStats> => collectStats(this.#statsDependencies, window)

  /** Undefined means as many as fit. */
  get keepBytes(): number | undefined {
    const { maxBytes = Infinity } = this.#deps
    return maxBytes < Number.MAX_SAFE_INTEGER ? maxBytes : undefined
  }

  /** The metrics in the text format of Prometheus. */
  readonly metrics = (): Promise<string> => this.#metrics.render()

  /** Wraps the store so that its calls are timed. */
  readonly meterStore = (store: Store): Store => this.#metrics.meterStore(store)

  readonly recordLag = (ms: Millis): void => this.#metrics.recordLag(ms)

  /** The task that merges old stats and removes expired ones. */
  get maintenanceTask(): { readonly name: string; readonly run: () => Promise<Millis> } {
    return { name: 'tallies', run: this.#recorder.fold }
  }

  get #statsDependencies(): StatsDependencies {
    return { store: this.#deps.store, now: this.#deps.now, recorder: this.#recorder }
  }

  /** Writes the last counters, if the store answers in time. */
  stop(): Promise<void> {
    return this.#recorder.stop()
  }
}
