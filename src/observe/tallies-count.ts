// Counters of one stretch of time for each kind of event and each flow: small, bounded, and made to be added up.
import type { Millis } from '../clock.ts'
import type { EventBefore, EventEnd } from './tallies-facts.ts'

/** Names that did not fit, and what was counted under them. */
const OTHER = '(other)'
/** Whoever sends may make up types: beyond so many in one stretch, and so long ones, they share a row. */
const ROWS_MAX = 100
const NAME_LENGTH_MAX = 100

/** Times are counted in steps of an eighth of a doubling: a percentile is true to a tenth. */
const STEPS = 8

/** As they are written: eight counts, and pairs of step and count. */
type WrittenCounts = readonly [readonly number[], readonly number[]]
/** A row of a table: two names and their counts. */
export type WrittenRow = readonly [string, string, ...WrittenCounts]

export class Counts {
  received = 0
  done = 0
  dropped = 0
  dead = 0
  /** Events that failed for the first time. */
  failing = 0
  /** Events that had failed before and have ended now, however. */
  mended = 0
  /** Events of dead letters that were tried again, and are something else than dead now. */
  revived = 0
  /** From arrival to done, of all that are done and were no replay. */
  ms: Millis = 0
  readonly steps: Map<number, number> = new Map()

  end(how: EventEnd, before: EventBefore): void {
    if (how === before) return
    this[how]++
    if (before === 'failing') this.mended++
    if (before === 'dead') this.revived++
  }

  took(ms: Millis): void {
    const step = ms < 1 ? 0 : 1 + Math.floor(STEPS * Math.log2(ms))
    this.ms += ms
    this.steps.set(step, (this.steps.get(step) ?? 0) + 1)
  }

  add([counts, steps]: WrittenCounts): void {
    // What an older release wrote has no eighth.
    const [received = 0, done = 0, dropped = 0, dead = 0, failing = 0, mended = 0, ms = 0, revived = 0] = counts
    this.received += received
    this.done += done
    this.dropped += dropped
    this.dead += dead
    this.failing += failing
    this.mended += mended
    this.ms += ms
    this.revived += revived
    for (let at = 0; at + 1 < steps.length; at += 2) {
      const step = steps[at] ?? 0
      this.steps.set(step, (this.steps.get(step) ?? 0) + (steps[at + 1] ?? 0))
    }
  }

  get timed(): number {
    let sum = 0
    for (const count of this.steps.values()) sum += count
    return sum
  }

  /** Below which this share of all times lies; undefined without any. */
  quantile(share: number): Millis | undefined {
    let left = share * this.timed
    if (left === 0) return undefined
    const steps = [...this.steps].toSorted(([one], [other]) => one - other)
    for (const [step, count] of steps) {
      if (count >= left) return between(step, left / count)
      left -= count
    }
    return between(steps.at(-1)?.[0] ?? 0, 1)
  }

  written(): WrittenCounts {
    const { received, done, dropped, dead, failing, mended, ms, revived } = this
    return [[received, done, dropped, dead, failing, mended, Math.round(ms), revived], [...this.steps].flat()]
  }
}

function between(step: number, share: number): Millis {
  const [low, high] = step === 0 ? [0, 1] : [2 ** ((step - 1) / STEPS), 2 ** (step / STEPS)]
  return low + (high - low) * share
}

/** Counts under two names, such as a source and a type. What has one name leaves the second empty. */
export class Table {
  readonly #rows = new Map<string, Map<string, Counts>>()
  readonly #rowsMax: number
  #size = 0

  constructor(rowsMax: number = ROWS_MAX) {
    this.#rowsMax = rowsMax
  }

  at(first: string, second: string): Counts {
    return this.#rows.get(first)?.get(second) ?? this.#made(first, second)
  }

  add(rows: readonly WrittenRow[]): void {
    for (const [first, second, ...counts] of rows) this.at(first, second).add(counts)
  }

  *rows(): Generator<readonly [string, string, Counts]> {
    for (const [first, rest] of this.#rows) for (const [second, counts] of rest) yield [first, second, counts]
  }

  written(): readonly WrittenRow[] {
    return Array.from(this.rows(), ([first, second, counts]) => [first, second, ...counts.written()])
  }

  #made(first: string, second: string): Counts {
    const isOther = first === OTHER && (second === OTHER || second === '')
    const fits = this.#size < this.#rowsMax && first.length <= NAME_LENGTH_MAX && second.length <= NAME_LENGTH_MAX
    if (!fits && !isOther) return this.at(OTHER, second === '' ? '' : OTHER)
    const counts = new Counts()
    const rest = this.#rows.get(first)
    if (rest === undefined) this.#rows.set(first, new Map([[second, counts]]))
    else rest.set(second, counts)
    this.#size++
    return counts
  }
}

/** One stretch of time, as it is written. */
export interface WrittenCell {
  readonly at: Millis
  readonly span: Millis
  readonly kinds: readonly WrittenRow[]
  readonly flows: readonly WrittenRow[]
}

export class Cell {
  readonly at: Millis
  readonly span: Millis
  /** By source and type. */
  readonly kinds: Table = new Table()
  readonly flows: Table = new Table()

  constructor(at: Millis, span: Millis) {
    this.at = at
    this.span = span
  }

  add({ kinds, flows }: WrittenCell): void {
    this.kinds.add(kinds)
    this.flows.add(flows)
  }

  written(): WrittenCell {
    return { at: this.at, span: this.span, kinds: this.kinds.written(), flows: this.flows.written() }
  }
}
