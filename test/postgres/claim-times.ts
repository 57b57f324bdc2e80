// Measures how long claims took, in total and for each ten seconds.
import { rounded } from '../figures/folder.ts'

export interface Sample {
  readonly at: number
  readonly ms: number
}

export interface Took {
  readonly claims: number
  /** The duration of each settle-and-claim call, in milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly most: number
}

const SLICE = 10_000

export function took(samples: readonly Sample[]): Took {
  const sorted = samples.map(({ ms }) => ms).toSorted((one, other) => one - other)
  const part = (share: number): number => rounded(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
  return { claims: sorted.length, p50: part(0.5), p99: part(0.99), most: part(1) }
}

/** The values for each ten seconds. */
export function slices(samples: readonly Sample[], from: number, to: number): readonly Took[] {
  return Array.from({ length: Math.floor((to - from) / SLICE) }, (_, n) => {
    const begin = from + n * SLICE
    return took(samples.filter((sample) => sample.at >= begin && sample.at < begin + SLICE))
  })
}

/** The time until the first ten seconds with normal values had passed; undefined if there were none. */
export function backAfter(found: readonly Took[], most: number): number | undefined {
  const normal = found.findIndex(({ p99 }) => p99 <= most)
  return normal === -1 ? undefined : (normal + 1) * SLICE
}
