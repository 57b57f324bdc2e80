// Whether something that was measured again and again grows without end, or has found its size.
import { rounded } from '../../figures/folder.ts'

export interface Growth {
  /** Medians of the second quarter of the time and of the last. */
  readonly early: number
  readonly late: number
  readonly ratio: number
  /** Every one that was measured, in one line. */
  readonly all: string
}

/**
 * The first quarter is left out: until then there is less to be kept each minute than is kept in the end. What gets the
 * same amount more each minute from the beginning has a ratio of 7/3.
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
