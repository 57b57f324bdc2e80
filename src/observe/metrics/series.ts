// Counters, gauges and histograms as plain numbers. They cost almost nothing until somebody scrapes, and their number
// of label values is bounded for any input.

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

const OTHER = 'other'
const MAX_ROWS = 200
const MAX_LABEL_LENGTH = 100

/** The values per pair of label values. Senders can invent names, so pairs beyond a bound share one row. */
class LabelRows<V> {
  readonly #createValue: () => V
  readonly #labels: readonly string[]
  readonly #rows = new Map<string, Map<string, V>>()
  #isDeclared: IsDeclared = () => false
  #size = 0

  constructor(labels: readonly string[], made: () => V) {
    this.#labels = labels
    this.#createValue = made
  }

  /** `setDeclaredFlows` names the flows of the app. They always have rows of their own, however many they are. */
  setDeclaredFlows(isDeclared: IsDeclared): void {
    if (this.#labels[0] === 'flow') this.#isDeclared = isDeclared
  }

  get(first: string, second: string): V {
    return this.#rows.get(first)?.get(second) ?? this.#add(first, second)
  }

  /** `ensure` creates a row that the bound does not limit, for names that senders cannot invent. */
  ensure(first: string, second: string): void {
    if (this.#rows.get(first)?.has(second) !== true) this.#put(first, second)
  }

  clear(): void {
    this.#rows.clear()
    this.#size = 0
  }

  *all(): Generator<readonly [Readonly<Record<string, string>>, V]> {
    for (const [first, rest] of this.#rows) {
      for (const [second, value] of rest) yield [this.#toLabels([first, second]), value]
    }
  }

  #toLabels(values: readonly string[]): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#labels.map((label, at) => [label, values[at] ?? '']))
  }

  #add(first: string, second: string): V {
    const isOther = first === OTHER && (second === OTHER || second === '')
    const fits = this.#size < MAX_ROWS && first.length <= MAX_LABEL_LENGTH && second.length <= MAX_LABEL_LENGTH
    if (!fits && !isOther && !this.#isDeclared(first)) return this.get(OTHER, second === '' ? '' : OTHER)
    this.#size++
    return this.#put(first, second)
  }

  #put(first: string, second: string): V {
    const value = this.#createValue()
    const rest = this.#rows.get(first)
    if (rest === undefined) this.#rows.set(first, new Map([[second, value]]))
    else rest.set(second, value)
    return value
  }
}

/** `NumberSeries` is a counter, or a gauge that is filled again on each scrape. */
export class NumberSeries implements Series {
  readonly name: string
  readonly #info: SeriesInfo
  readonly #type: 'counter' | 'gauge'
  readonly #rows: LabelRows<{ n: number }>

  constructor(type: 'counter' | 'gauge', words: SeriesInfo) {
    this.name = words.name
    this.#type = type
    this.#info = words
    this.#rows = new LabelRows(words.labels, () => ({ n: 0 }))
    // A counter without labels starts at 0, so that queries find it by name.
    if (words.labels.length === 0) this.#rows.get('', '')
  }

  /** `ensure` creates the row with 0, so that rate queries also see the first increase. */
  ensure(first: string, second = ''): void {
    this.#rows.ensure(first, second)
  }

  add(by = 1, first = '', second = ''): void {
    this.#rows.get(first, second).n += by
  }

  /** `setMax` is for values that cannot be added up, such as ages: names that share a row show the highest. */
  setMax(value: number, first: string): void {
    const row = this.#rows.get(first, '')
    row.n = Math.max(row.n, value)
  }

  setDeclaredFlows(isDeclared: IsDeclared): void {
    this.#rows.setDeclaredFlows(isDeclared)
  }

  clear(): void {
    this.#rows.clear()
  }

  async get(): Promise<Metric> {
    const values = Array.from(this.#rows.all(), ([labels, { n }]) => ({ labels, value: n }))
    return { name: this.name, help: this.#info.help, type: this.#type, values, aggregator: 'sum' }
  }
}

interface HistogramRow {
  readonly counts: number[]
  sum: number
}

export class Histogram implements Series {
  readonly name: string
  readonly #info: SeriesInfo
  readonly #bounds: readonly number[]
  readonly #rows: LabelRows<HistogramRow>

  constructor(words: SeriesInfo, bounds: readonly number[]) {
    this.name = words.name
    this.#info = words
    this.#bounds = bounds
    this.#rows = new LabelRows(words.labels, () => ({
      counts: Array.from({ length: bounds.length + 1 }, () => 0),
      sum: 0,
    }))
  }

  setDeclaredFlows(isDeclared: IsDeclared): void {
    this.#rows.setDeclaredFlows(isDeclared)
  }

  observe(value: number, first = '', second = ''): void {
    const spread = this.#rows.get(first, second)
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at++
    spread.counts[at] = (spread.counts[at] ?? 0) + 1
    spread.sum += value
  }

  async get(): Promise<Metric> {
    const { name } = this
    const values = Array.from(this.#rows.all(), ([labels, spread]) => this.#samples(labels, spread)).flat()
    return { name, help: this.#info.help, type: 'histogram', values, aggregator: 'sum' }
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
