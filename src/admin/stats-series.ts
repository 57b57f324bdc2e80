// The stats of a window as a series of equal steps, for curves: computed from the same counts as the sums.
import type { Millis } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { Counts, type StoredBucket, type StoredRow } from '../observe/stats/buckets.ts'
import { floorTo, MINUTE } from '../observe/stats/rollups.ts'
import { invalidOption } from '../validate/options.ts'

/** `StatsPoint` is one step. `waiting` is the number of waiting events at its end, computed back from the number now. */
export interface StatsPoint {
  readonly at: Millis
  readonly received: number
  readonly done: number
  readonly dropped: number
  readonly dead: number
  /** Events that failed for the first time. */
  readonly failing: number
  /** Attempts that ended, and those of them that failed. By source and type, these and `lateMs` are missing. */
  readonly runs?: number
  readonly failedRuns?: number
  /** The longest delay in the step between the deadline of a lane and the start of its run; undefined if no run began. */
  readonly lateMs?: Millis
  readonly meanMs: Millis | undefined
  readonly p95Ms: Millis | undefined
  readonly waiting?: number
}

/** `StatsSeries` has the steps from `from` on. The last one is the current step, which has not ended. */
export interface StatsSeries {
  readonly step: Millis
  readonly from: Millis
  readonly points: readonly StatsPoint[]
}

const HOUR: Millis = 60 * MINUTE
const MAX_POINTS = 500
/** Old counts are kept in longer periods, so a longer window has longer steps. */
const SHORTEST_STEPS: readonly { readonly window: Millis; readonly step: Millis; readonly text: string }[] = [
  { window: 2 * HOUR, step: MINUTE, text: '1m' },
  { window: 24 * HOUR, step: 10 * MINUTE, text: '10m' },
  { window: Infinity, step: HOUR, text: '1h' },
]

export function parseStatsStep(step: Duration | undefined, window: Millis): Millis | undefined {
  if (step === undefined) return undefined
  const ms = parseDuration(step, 'stats.step')
  const shortest = SHORTEST_STEPS.find((one) => window <= one.window)
  const isBounded = ms <= window && window / ms <= MAX_POINTS - 1 && ms % MINUTE === 0
  if (shortest !== undefined && ms >= shortest.step && isBounded) return ms
  throw invalidOption(
    `stats.step must be whole minutes, from ${shortest?.text} to the window, with at most ${MAX_POINTS} steps; got ${JSON.stringify(step)}.`,
  )
}

interface SeriesInput {
  readonly buckets: readonly StoredBucket[]
  readonly step: Millis
  readonly window: Millis
  readonly now: Millis
}

/** `createSeries` takes the number of waiting events now. */
export function createSeries(input: SeriesInput, waiting: number): StatsSeries {
  const kinds = sumBySteps(input, ({ kinds: rows }) => rows)
  const flows = sumBySteps(input, ({ flows: rows }) => rows)
  const points = withWaiting(flows, waiting).map((point, n) => ({ ...toPoint(kinds[n] ?? EMPTY), ...point }))
  return { step: input.step, from: points[0]?.at ?? input.now, points }
}

export type SeriesGroup = 'source' | 'type' | 'source,type' | 'flow'

/** `createGroupSeries` returns the points of the rows that `isOf` selects. `waiting` is for a flow. */
export function createGroupSeries(
  input: SeriesInput,
  by: SeriesGroup,
  isOf: (row: StoredRow) => boolean,
  waiting: number,
): readonly StatsPoint[] {
  const steps = sumBySteps(input, (bucket) => (by === 'flow' ? bucket.flows : bucket.kinds).filter(isOf))
  if (by !== 'flow') return steps.map(toPoint)
  return withWaiting(steps, waiting).map((point, n) => ({ ...toPoint(steps[n] ?? EMPTY), ...point }))
}

interface Step {
  readonly at: Millis
  readonly counts: Counts
}

const EMPTY: Step = { at: 0, counts: new Counts() }

function sumBySteps(
  { buckets, step, window, now }: SeriesInput,
  rowsOf: (bucket: StoredBucket) => readonly StoredRow[],
): readonly Step[] {
  const from = floorTo(now - window, step)
  const steps: Step[] = []
  for (let at = from; at <= now; at += step) steps.push({ at, counts: new Counts() })
  for (const bucket of buckets) {
    const counts = steps[Math.floor((bucket.at - from) / step)]?.counts
    if (counts !== undefined) for (const [, , ...stored] of rowsOf(bucket)) counts.add(stored)
  }
  return steps
}

function toPoint({ at, counts }: Step): StatsPoint {
  const { received, done, dropped, dead, failing, ms, timedCount } = counts
  const meanMs = timedCount === 0 ? undefined : ms / timedCount
  return { at, received, done, dropped, dead, failing, meanMs, p95Ms: counts.quantile(0.95) }
}

type RunPoint = Required<Pick<StatsPoint, 'at' | 'runs' | 'failedRuns' | 'waiting'>> & Pick<StatsPoint, 'lateMs'>

/** What waited before a step is what waited after it, without what arrived and with what ended. */
function withWaiting(steps: readonly Step[], now: number): readonly RunPoint[] {
  let waiting = now
  const points = steps.toReversed().map(({ at, counts }) => {
    const { received, done, dropped, dead, revived, runs, failedRuns, lateMs } = counts
    const point = { at, runs, failedRuns, waiting, ...(runs + lateMs > 0 && { lateMs }) }
    waiting = Math.max(0, waiting - received + done + dropped + dead - revived)
    return point
  })
  return points.toReversed()
}
