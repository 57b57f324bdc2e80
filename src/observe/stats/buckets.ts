// Counters of one period, per kind of event and per flow: small, bounded, and made to be added up.
import type { Millis } from '../../clock.ts'
import { NameTable } from '../name-table.ts'
import type { PreviousEventEnd, EventEnd } from './run-facts.ts'

const MAX_ROWS = 100

/** Durations are counted in steps of an eighth of a doubling, so a percentile is accurate to a tenth. */
const STEPS_PER_DOUBLING = 8

/** The stored form: the counts in the order of `add`, then pairs of step and count. */
type StoredCounts = readonly [readonly number[], readonly number[]]
/** `StoredRow` is one row of a table: two names and their counts. */
export type StoredRow = readonly [string, string, ...StoredCounts]

export class Counts {
  received = 0
  done = 0
  dropped = 0
  dead = 0
  /** Events that failed for the first time. */
  failing = 0
  /** Events that had failed before and have ended now, in any way. */
  recovered = 0
  /** Events of dead letters that were retried and are no longer dead. */
  revived = 0
  /** The total time from arrival to done, over all events that are done and were not replayed. */
  ms: Millis = 0
  /** Attempts that ended, and those of them that failed. Counted per flow only, like `lateMs`. */
  runs = 0
  failedRuns = 0
  /** The longest delay between the deadline of a lane and the start of its run. */
  lateMs: Millis = 0
  readonly steps: Map<number, number> = new Map()

  countEnd(end: EventEnd, before: PreviousEventEnd): void {
    if (end === before) return
    this[end]++
    if (before === 'failing') this.recovered++
    if (before === 'dead') this.revived++
  }

  addTime(ms: Millis): void {
    const step = ms < 1 ? 0 : 1 + Math.floor(STEPS_PER_DOUBLING * Math.log2(ms))
    this.ms += ms
    this.steps.set(step, (this.steps.get(step) ?? 0) + 1)
  }

  add([counts, steps]: StoredCounts): void {
    const [received = 0, done = 0, dropped = 0, dead = 0, failing = 0, mended = 0, ms = 0, revived = 0, ...rest] =
      counts
    const [runs = 0, failedRuns = 0, lateMs = 0] = rest
    this.received += received
    this.done += done
    this.dropped += dropped
    this.dead += dead
    this.failing += failing
    this.recovered += mended
    this.ms += ms
    this.revived += revived
    this.runs += runs
    this.failedRuns += failedRuns
    this.lateMs = Math.max(this.lateMs, lateMs)
    for (let at = 0; at + 1 < steps.length; at += 2) {
      const step = steps[at] ?? 0
      this.steps.set(step, (this.steps.get(step) ?? 0) + (steps[at + 1] ?? 0))
    }
  }

  get timedCount(): number {
    let sum = 0
    for (const count of this.steps.values()) sum += count
    return sum
  }

  /** `quantile` returns the duration that the given share of all durations does not exceed; undefined if the histogram is empty. */
  quantile(share: number): Millis | undefined {
    let left = share * this.timedCount
    if (left === 0) return undefined
    const steps = [...this.steps].toSorted(([one], [other]) => one - other)
    for (const [step, count] of steps) {
      if (count >= left) return interpolate(step, left / count)
      left -= count
    }
    return interpolate(steps.at(-1)?.[0] ?? 0, 1)
  }

  toStored(): StoredCounts {
    const { received, done, dropped, dead, failing, recovered, ms, revived, runs, failedRuns, lateMs } = this
    const counts = [
      received,
      done,
      dropped,
      dead,
      failing,
      recovered,
      Math.round(ms),
      revived,
      runs,
      failedRuns,
      lateMs,
    ]
    return [counts, [...this.steps].flat()]
  }
}

function interpolate(step: number, share: number): Millis {
  const [low, high] = step === 0 ? [0, 1] : [2 ** ((step - 1) / STEPS_PER_DOUBLING), 2 ** (step / STEPS_PER_DOUBLING)]
  return low + (high - low) * share
}

/** `CountsTable` holds counts under two names. A table with one name leaves the second empty. */
export class CountsTable extends NameTable<Counts> {
  constructor(maxRows: number = MAX_ROWS) {
    super({ maxRows, other: '(other)' }, () => new Counts())
  }

  add(rows: readonly StoredRow[]): void {
    for (const [first, second, ...counts] of rows) this.get(first, second).add(counts)
  }

  toStored(): readonly StoredRow[] {
    return Array.from(this.rows(), ([first, second, counts]) => [first, second, ...counts.toStored()])
  }
}

/** `StoredBucket` is one period in its stored form. */
export interface StoredBucket {
  readonly at: Millis
  readonly span: Millis
  readonly kinds: readonly StoredRow[]
  readonly flows: readonly StoredRow[]
}

export class Bucket {
  readonly at: Millis
  readonly span: Millis
  /** By source and type. */
  readonly kinds: CountsTable = new CountsTable()
  readonly flows: CountsTable = new CountsTable()

  constructor(at: Millis, span: Millis) {
    this.at = at
    this.span = span
  }

  add({ kinds, flows }: StoredBucket): void {
    this.kinds.add(kinds)
    this.flows.add(flows)
  }

  toStored(): StoredBucket {
    return { at: this.at, span: this.span, kinds: this.kinds.toStored(), flows: this.flows.toStored() }
  }
}
