// Counters, gauges and histograms as plain numbers. They cost almost nothing until somebody scrapes, and their number
// of label values is bounded for any input.

import { NameTable } from '../name-table.ts'

/** One line of the exposition text. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly values: readonly Sample[]
  readonly aggregator: 'sum'
}

/** `Series` has the shape that prom-client's registry expects of a metric. */
export interface Series {
  readonly name: string
  setDeclaredFlows(isDeclared: IsDeclared): void
  get(): Promise<Metric>
}

interface SeriesInfo {
  readonly name: string
  readonly help: string
  /** At most two. */
  readonly labels: readonly string[]
}

type IsDeclared = (flow: string) => boolean

const BOUNDS = { maxRows: 200, other: 'other' } as const

/** The values of one metric, by the values of its labels. */
class LabelledValues<V> {
  readonly name: string
  protected readonly rows: NameTable<V>
  protected readonly info: SeriesInfo

  constructor(info: SeriesInfo, create: () => V) {
    this.name = info.name
    this.info = info
    this.rows = new NameTable(BOUNDS, create)
  }

  /** `setDeclaredFlows` names the flows of the app. They always have rows of their own, however many they are. */
  setDeclaredFlows(isDeclared: IsDeclared): void {
    if (this.info.labels[0] === 'flow') this.rows.exempt(isDeclared)
  }

  clear(): void {
    this.rows.clear()
  }

  protected toMetric(
    type: Metric['type'],
    toSamples: (labels: Sample['labels'], value: V) => readonly Sample[],
  ): Metric {
    const { name, help, labels } = this.info
    const values = Array.from(this.rows.rows(), ([first, second, value]) =>
      toSamples(Object.fromEntries(labels.map((label, at) => [label, [first, second][at] ?? ''])), value),
    )
    return { name, help, type, values: values.flat(), aggregator: 'sum' }
  }
}

/** `NumberSeries` is a counter, or a gauge that is filled again on each scrape. */
export class NumberSeries extends LabelledValues<{ n: number }> implements Series {
  readonly #type: 'counter' | 'gauge'

  constructor(type: 'counter' | 'gauge', info: SeriesInfo) {
    super(info, () => ({ n: 0 }))
    this.#type = type
    // A counter without labels starts at 0, so that queries find it by name.
    if (info.labels.length === 0) this.rows.get('', '')
  }

  /** `ensure` creates the row with 0, so that rate queries also see the first increase. */
  ensure(first: string, second = ''): void {
    this.rows.ensure(first, second)
  }

  add(by = 1, first = '', second = ''): void {
    this.rows.get(first, second).n += by
  }

  /** `setMax` is for values that cannot be added up, such as ages: names that share a row show the highest. */
  setMax(value: number, first: string): void {
    const row = this.rows.get(first, '')
    row.n = Math.max(row.n, value)
  }

  async get(): Promise<Metric> {
    return this.toMetric(this.#type, (labels, { n }) => [{ labels, value: n }])
  }
}

export type Counter = NumberSeries
export type Gauge = NumberSeries

interface HistogramRow {
  readonly counts: number[]
  sum: number
}

export class Histogram extends LabelledValues<HistogramRow> implements Series {
  readonly #bounds: readonly number[]

  constructor(info: SeriesInfo, bounds: readonly number[]) {
    super(info, () => ({ counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }))
    this.#bounds = bounds
  }

  observe(value: number, first = '', second = ''): void {
    const spread = this.rows.get(first, second)
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at++
    spread.counts[at] = (spread.counts[at] ?? 0) + 1
    spread.sum += value
  }

  async get(): Promise<Metric> {
    return this.toMetric('histogram', (labels, row) => this.#samples(labels, row))
  }

  #samples(labels: Sample['labels'], { counts, sum }: HistogramRow): readonly Sample[] {
    const { name } = this
    let upTo = 0
    const buckets = counts.map((count, at) => ({
      labels: { ...labels, le: this.#bounds[at] ?? '+Inf' },
      value: (upTo += count),
      metricName: `${name}_bucket`,
    }))
    const ends = [
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: upTo, metricName: `${name}_count` },
    ]
    return [...buckets, ...ends]
  }
}
