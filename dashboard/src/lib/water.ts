// How high the water of a lane stands: each event that joins raises it by a step that gets smaller.

const HIGHEST = 23
const SOFTNESS = 3.2

export interface Step {
  readonly from: number
  readonly to: number
  readonly height: number
  /** Whether an event arrived exactly at `from`. */
  readonly isDrop: boolean
}

export function heightOf(events: number, highest = HIGHEST): number {
  return highest * (1 - Math.exp(-events / SOFTNESS))
}

/**
 * `stepsOf` returns the water from the first arrival to `end`. `total` may exceed the arrivals, of which only the first
 * are known; the rest then joins with the last known one.
 */
export function stepsOf(arrivals: readonly number[], total: number, end: number, highest = HIGHEST): Step[] {
  return arrivals
    .filter((at) => at < end)
    .map((at, index, known) => {
      const isLast = index === known.length - 1
      const events = isLast && arrivals.length === known.length ? Math.max(total, index + 1) : index + 1
      return { from: at, to: known[index + 1] ?? end, height: heightOf(events, highest), isDrop: true }
    })
}
