// `Durations` counts durations in steps, so that percentiles of many POSTs take little room and can be added up. Pure.
import type { Millis } from '../../clock.ts'

/** A quarter of a doubling: a percentile is accurate to a fifth. */
const STEPS_PER_DOUBLING = 4

/** `Durations` has pairs of a step and how many durations it has, in the order of the steps. */
export type Durations = readonly (readonly [step: number, count: number])[]

export const NO_DURATIONS: Durations = []

/** `DurationCounter` counts many durations at little cost each. */
export class DurationCounter {
  readonly #counts = new Map<number, number>()

  add(ms: Millis): void {
    this.#addTo(ms < 1 ? 0 : 1 + Math.floor(STEPS_PER_DOUBLING * Math.log2(ms)), 1)
  }

  addAll(durations: Durations): void {
    for (const [step, count] of durations) this.#addTo(step, count)
  }

  #addTo(step: number, count: number): void {
    this.#counts.set(step, (this.#counts.get(step) ?? 0) + count)
  }

  toDurations(): Durations {
    return [...this.#counts].toSorted(([a], [b]) => a - b)
  }
}

export function toDurations(ms: Millis): Durations {
  const counter = new DurationCounter()
  counter.add(ms)
  return counter.toDurations()
}

export function addDurations(one: Durations, other: Durations): Durations {
  if (one.length === 0) return other
  if (other.length === 0) return one
  const counter = new DurationCounter()
  counter.addAll(one)
  counter.addAll(other)
  return counter.toDurations()
}

export interface Percentiles {
  readonly p50: Millis
  readonly p95: Millis
  readonly p99: Millis
}

/** `computePercentiles` returns undefined if nothing was counted. */
export function computePercentiles(durations: Durations): Percentiles | undefined {
  const all = durations.reduce((sum, [, count]) => sum + count, 0)
  if (all === 0) return undefined
  return {
    p50: findPercentile(durations, 0.5 * all),
    p95: findPercentile(durations, 0.95 * all),
    p99: findPercentile(durations, 0.99 * all),
  }
}

/** Returns the upper end of the step with this many durations up to it. */
function findPercentile(durations: Durations, upTo: number): Millis {
  let left = upTo
  const [found] = durations.find(([, count]) => (left -= count) <= 0) ?? durations.at(-1) ?? [0]
  return found === 0 ? 1 : Math.ceil(2 ** (found / STEPS_PER_DOUBLING))
}
