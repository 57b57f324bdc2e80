// Counters, gauges and histograms as plain numbers: they cost next to nothing while nobody asks for metrics, and have a
// bounded number of label values whatever comes in.

/** One line of the text. */
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

/** As the registry that writes the text asks for it. */
export interface Series {
  readonly name: string
  keepFlows(isDeclared: IsDeclared): void
  get(): Promise<Metric>
}

interface Words {
  readonly name: string
  readonly help: string
  /** At most two. */
  readonly labels: readonly string[]
}

type IsDeclared = (flow: string) => boolean

const OTHER = 'other'
const ROWS_MAX = 200
const LABEL_LENGTH_MAX = 100

/** What is counted under each pair of label values. Whoever sends may make up names: beyond a bound they share a row. */
class Rows<V> {
  readonly #made: () => V
  readonly #labels: readonly string[]
  readonly #rows = new Map<string, Map<string, V>>()
  #isOurs: IsDeclared = () => false
  #size = 0

  constructor(labels: readonly string[], made: () => V) {
    this.#labels = labels
    this.#made = made
  }

  /** Flows that the app itself declares have rows of their own, however many they are. */
  keepFlows(isDeclared: IsDeclared): void {
    if (this.#labels[0] === 'flow') this.#isOurs = isDeclared
  }

  at(first: string, second: string): V {
    return this.#rows.get(first)?.get(second) ?? this.#add(first, second)
  }

  /** Of names that nobody sends: they have a row each, whatever the bound is. */
  touch(first: string, second: string): void {
    if (this.#rows.get(first)?.has(second) !== true) this.#put(first, second)
  }

  clear(): void {
    this.#rows.clear()
    this.#size = 0
  }

  *all(): Generator<readonly [Readonly<Record<string, string>>, V]> {
    for (const [first, rest] of this.#rows) {
      for (const [second, value] of rest) yield [this.#named([first, second]), value]
    }
  }

  #named(values: readonly string[]): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#labels.map((label, at) => [label, values[at] ?? '']))
  }

  #add(first: string, second: string): V {
    const isOther = first === OTHER && (second === OTHER || second === '')
    const fits = this.#size < ROWS_MAX && first.length <= LABEL_LENGTH_MAX && second.length <= LABEL_LENGTH_MAX
    if (!fits && !isOther && !this.#isOurs(first)) return this.at(OTHER, second === '' ? '' : OTHER)
    this.#size++
    return this.#put(first, second)
  }

  #put(first: string, second: string): V {
    const value = this.#made()
    const rest = this.#rows.get(first)
    if (rest === undefined) this.#rows.set(first, new Map([[second, value]]))
    else rest.set(second, value)
    return value
  }
}

/** A counter, or a gauge that is filled anew each time it is asked for. */
export class Numbers implements Series {
  readonly name: string
  readonly #words: Words
  readonly #type: 'counter' | 'gauge'
  readonly #rows: Rows<{ n: number }>

  constructor(type: 'counter' | 'gauge', words: Words) {
    this.name = words.name
    this.#type = type
    this.#words = words
    this.#rows = new Rows(words.labels, () => ({ n: 0 }))
    // What was never counted is nought, and can be looked for by name.
    if (words.labels.length === 0) this.#rows.at('', '')
  }

  /** There, and nought if it was never counted: an increase is seen from the first on. */
  touch(first: string, second = ''): void {
    this.#rows.touch(first, second)
  }

  add(by = 1, first = '', second = ''): void {
    this.#rows.at(first, second).n += by
  }

  /** Of what cannot be added up, such as ages: those that share a row are as old as the oldest. */
  most(value: number, first: string): void {
    const row = this.#rows.at(first, '')
    row.n = Math.max(row.n, value)
  }

  keepFlows(isDeclared: IsDeclared): void {
    this.#rows.keepFlows(isDeclared)
  }

  clear(): void {
    this.#rows.clear()
  }

  async get(): Promise<Metric> {
    const values = Array.from(this.#rows.all(), ([labels, { n }]) => ({ labels, value: n }))
    return { name: this.name, help: this.#words.help, type: this.#type, values, aggregator: 'sum' }
  }
}

interface Spread {
  readonly counts: number[]
  sum: number
}

export class Histogram implements Series {
  readonly name: string
  readonly #words: Words
  readonly #bounds: readonly number[]
  readonly #rows: Rows<Spread>

  constructor(words: Words, bounds: readonly number[]) {
    this.name = words.name
    this.#words = words
    this.#bounds = bounds
    this.#rows = new Rows(words.labels, () => ({ counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }))
  }

  keepFlows(isDeclared: IsDeclared): void {
    this.#rows.keepFlows(isDeclared)
  }

  seen(value: number, first = '', second = ''): void {
    const spread = this.#rows.at(first, second)
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at++
    spread.counts[at] = (spread.counts[at] ?? 0) + 1
    spread.sum += value
  }

  async get(): Promise<Metric> {
    const { name } = this
    const values = Array.from(this.#rows.all(), ([labels, spread]) => this.#samples(labels, spread)).flat()
    return { name, help: this.#words.help, type: 'histogram', values, aggregator: 'sum' }
  }

  #samples(labels: Sample['labels'], { counts, sum }: Spread): readonly Sample[] {
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
