// The rate of now: one definition for all pages, so that their figures agree.
import type { StatsPoint } from './types.ts'

export interface Rate {
  readonly received: number
  readonly done: number
  /** The first minute is not over. */
  readonly isPartial: boolean
}

/** `lastMinute` returns what the last whole minute had; within the first minute, what it has so far. */
export function lastMinute(points: readonly StatsPoint[] = []): Rate {
  const [whole, current] = [points.at(-2), points.at(-1)]
  const isPartial = points.slice(0, -1).every(({ received, done }) => received + done === 0)
  const { received = 0, done = 0 } = (isPartial ? current : whole) ?? {}
  return { received, done, isPartial: isPartial && received + done > 0 }
}
