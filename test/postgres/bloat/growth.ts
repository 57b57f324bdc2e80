// Decides from repeated measurements whether a value grows without end or has settled.
import { rounded } from '../../figures/folder.ts'

export interface Growth {
  /** The medians of the second quarter of the time and of the last quarter. */
  readonly early: number
  readonly late: number
  readonly ratio: number
  /** All measured values, in one line. */
  readonly all: string
}

/**
 * The first quarter is excluded: until then, less is kept each minute than at the end. A value that grows by the same amount
 * each minute from the beginning has a ratio of 7/3.
 */
export function growthOf(values: readonly number[], digits = 2): Growth {
  const quarter = values.length / 4
  const early = median(values.slice(Math.floor(quarter), Math.floor(2 * quarter)))
  const late = median(values.slice(Math.floor(3 * quarter)))
  return {
    early: rounded(early, digits),
    late: rounded(late, digits),
    ratio: rounded(early === 0 ? (late === 0 ? 1 : Infinity) : late / early),
    all: values.map((value) => rounded(value, digits)).join(' '),
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const half = (sorted.length - 1) / 2
  return ((sorted[Math.floor(half)] ?? NaN) + (sorted[Math.ceil(half)] ?? NaN)) / 2
}
