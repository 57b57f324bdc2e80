// `NameTable` holds a value for each pair of names, such as source and type. Senders can invent names, so pairs beyond a bound, and
// overlong names, share one row.

const MAX_NAME_LENGTH = 100

export interface NameTableBounds {
  readonly maxRows: number
  /** The name of the shared row. */
  readonly other: string
}

export class NameTable<V> {
  readonly #bounds: NameTableBounds
  readonly #create: () => V
  readonly #rows = new Map<string, Map<string, V>>()
  #isExempt: (first: string) => boolean = () => false
  #size = 0

  constructor(bounds: NameTableBounds, create: () => V) {
    this.#bounds = bounds
    this.#create = create
  }

  /** `exempt` names the rows that the bound does not limit, because senders cannot invent them. */
  exempt(isExempt: (first: string) => boolean): void {
    this.#isExempt = isExempt
  }

  get(first: string, second: string): V {
    return this.#rows.get(first)?.get(second) ?? this.#add(first, second)
  }

  /** `ensure` creates a row that the bound does not limit. */
  ensure(first: string, second: string): void {
    if (this.#rows.get(first)?.has(second) !== true) this.#put(first, second)
  }

  clear(): void {
    this.#rows.clear()
    this.#size = 0
  }

  *rows(): Generator<readonly [string, string, V]> {
    for (const [first, rest] of this.#rows) for (const [second, value] of rest) yield [first, second, value]
  }

  #add(first: string, second: string): V {
    const { maxRows, other } = this.#bounds
    const isOther = first === other && (second === other || second === '')
    const fits = this.#size < maxRows && first.length <= MAX_NAME_LENGTH && second.length <= MAX_NAME_LENGTH
    if (!fits && !isOther && !this.#isExempt(first)) return this.get(other, second === '' ? '' : other)
    this.#size++
    return this.#put(first, second)
  }

  #put(first: string, second: string): V {
    const value = this.#create()
    const rest = this.#rows.get(first)
    if (rest === undefined) this.#rows.set(first, new Map([[second, value]]))
    else rest.set(second, value)
    return value
  }
}
