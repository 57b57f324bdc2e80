// The figures of an app, put together: what is counted from the start, told over a window and as metrics, and written at the end.
import type { Millis } from '../clock.ts'
import { Metrics, type MetricsParts } from '../observe/metrics.ts'
import { Tallies } from '../observe/tallies.ts'
import type { Store } from '../store/contract/index.ts'
import { gather, stats, type Gathered, type StatsAnswer, type StatsAsked, type StatsParts } from './stats.ts'

export class Figures {
  readonly #parts: MetricsParts
  readonly #tallies: Tallies
  readonly #metrics: Metrics

  constructor(parts: MetricsParts) {
    this.#parts = parts
    this.#tallies = new Tallies(parts)
    this.#metrics = new Metrics(parts)
  }

  readonly stats = (asked?: StatsAsked): Promise<StatsAnswer> => stats(this.#counted, asked)

  /** For whoever asks over several windows at once. */
  readonly gather = (window: Millis): Promise<Gathered> => gather(this.#counted, window)

  /** Undefined: as many as there is room for. */
  get keepBytes(): number | undefined {
    const { maxBytes = Infinity } = this.#parts
    return maxBytes < Number.MAX_SAFE_INTEGER ? maxBytes : undefined
  }

  /** The text for Prometheus. */
  readonly metrics = (): Promise<string> => this.#metrics.text()

  /** The same store, its calls timed. */
  readonly metered = (store: Store): Store => this.#metrics.metered(store)

  readonly lagged = (ms: Millis): void => this.#metrics.lagged(ms)

  /** Folds and forgets what is old. */
  get chore(): { readonly name: string; readonly work: () => Promise<Millis> } {
    return { name: 'tallies', work: this.#tallies.fold }
  }

  get #counted(): StatsParts {
    return { store: this.#parts.store, now: this.#parts.now, tallies: this.#tallies }
  }

  /** What was counted last is written, if the store answers. */
  stop(): Promise<void> {
    return this.#tallies.stop()
  }
}
