// The stats of an app over a window: how many events arrived, how long they took, how many failed, and how many wait
// now.
import type { Millis } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import { Counts, CountsTable, type StoredBucket, type StoredRow } from '../observe/stats/buckets.ts'
import { readDepths, sumDepths, type Depth, type Depths } from '../observe/stats/depth.ts'
import type { LaneScan } from '../observe/status/lane-scan.ts'
import type { StatsRecorder } from '../observe/stats/recorder.ts'
import { floorTo, MINUTE } from '../observe/stats/rollups.ts'
import type { Store } from '../store/contract/index.ts'
import {
  createGroupSeries,
  createSeries,
  parseStatsStep,
  type SeriesGroup,
  type StatsPoint,
  type StatsSeries,
} from './stats-series.ts'

type StatsBy = SeriesGroup

export interface StatsOptions {
  /** From one minute to 7 days. Default 1 day. */
  readonly window?: Duration
  /** How to group the stats. Default: only the total. */
  readonly by?: StatsBy
  /** Adds a series with steps of this length. At least 1 minute for up to 2 hours, 10 minutes for up to a day, then 1 hour. */
  readonly step?: Duration
}

/** What happened in the window. Endings are counted per event and flow, so an event of two flows ends twice. */
interface WindowStats {
  readonly received: number
  readonly receivedPerMinute: number
  readonly done: number
  readonly dropped: number
  /** Events that became dead letters and have not recovered since. */
  readonly dead: number
  readonly deadPerDay: number
  /**
   * Events that wait for another attempt now. By source and type: events that first failed in the window and have not
   * ended since.
   */
  readonly failing: number
  /** The share of dead and failing events among them and all ended ones, from 0 to 1. Undefined if no event ended. */
  readonly failureRate: number | undefined
  /** From arrival to done. The percentile is accurate to 10 %. */
  readonly meanMs: number | undefined
  readonly p95Ms: number | undefined
}

/** What waits now, in one flow or in total. It is not available by source and type. */
interface QueueStats {
  /** Events that wait, and events that wait for their next attempt. */
  readonly depth: number
  /** The deadline of the lane that has been due the longest. */
  readonly oldest: Millis | undefined
}

interface StatsGroup extends WindowStats, Partial<QueueStats> {
  readonly source?: string
  readonly type?: string
  readonly flow?: string
  /** With `step`: the same steps as in the series of the total. */
  readonly series?: readonly StatsPoint[]
}

export interface StatsResult {
  readonly now: Millis
  /** The actual start of the window: a full minute; beyond two hours a full ten minutes; beyond a day a full hour. */
  readonly from: Millis
  readonly total: WindowStats & QueueStats
  /** False if there are more waiting lanes than were read. `depth` is then a lower bound. */
  readonly depthIsWhole: boolean
  /** Sorted by name. */
  readonly groups: readonly StatsGroup[]
  /** With `step`: the series of the total. */
  readonly series?: StatsSeries
}

export interface StatsDependencies {
  readonly store: () => Promise<Store>
  readonly recorder: Pick<StatsRecorder, 'readSince'>
  readonly now: () => Millis
  /** For a series, which is polled: the lanes are then at most seconds old. */
  readonly scan?: Pick<LaneScan, 'read'>
}

const DAY: Millis = 86_400_000
const LONGEST_WINDOW: Millis = 7 * DAY
const BY: ReadonlySet<string> = new Set<StatsBy>(['source', 'type', 'source,type', 'flow'])

export async function readStats(deps: StatsDependencies, options: StatsOptions = {}): Promise<StatsResult> {
  assertKnownOptions(options, ['window', 'by', 'step'], 'stats: ')
  const { by } = options
  if (by !== undefined && !BY.has(by))
    throw invalidOption(`stats.by must be ${[...BY].join(' or ')}; got ${JSON.stringify(by)}.`)
  const window = parseStatsWindow(options.window ?? '24h')
  const step = parseStatsStep(options.step, window)
  const { now, buckets, depths } = await collectStats(deps, window, step, step === undefined ? undefined : deps.scan)
  const start = floorToMinute(now - window)
  const cells = buckets.filter(({ at, span }) => at + span > start)
  const from = windowStart(cells, start)
  const covered = Math.max(1, now - from)
  const withDepth = (counts: Counts, waits: WaitingDepth): WindowStats & QueueStats => ({
    ...toWindowStats(counts, waits.failing, covered),
    ...toQueueStats(waits),
  })
  const depthOf = (flow: string | undefined): WaitingDepth => depths.flows.get(flow ?? '') ?? NO_WAITING_DEPTH
  const input = step === undefined ? undefined : { buckets, step, window, now }
  return {
    now,
    from,
    total: withDepth(sumCounts(cells), depths.total),
    depthIsWhole: depths.isComplete,
    groups: groupCounts(cells, by, [...depths.flows.keys()]).map(([names, counts]) => ({
      ...names,
      ...(names.flow === undefined
        ? toWindowStats(counts, Math.max(0, counts.failing - counts.recovered), covered)
        : withDepth(counts, depthOf(names.flow))),
      ...(input !== undefined &&
        by !== undefined && {
          series: createGroupSeries(input, by, isInGroup(names), countWaiting(depthOf(names.flow))),
        }),
    })),
    ...(input !== undefined && { series: createSeries(input, countWaiting(depths.total)) }),
  }
}

function isInGroup({ flow, source, type }: GroupNames): (row: StoredRow) => boolean {
  return ([first, second]) =>
    flow === undefined
      ? (source === undefined || source === first) && (type === undefined || type === second)
      : flow === first
}

/** The collected data for the stats of any window up to the requested one. */
export interface CollectedStats {
  readonly now: Millis
  readonly buckets: readonly StoredBucket[]
  readonly depths: Depths
}

/** `collectStats` reads from the start of the step of `step` milliseconds in which the window begins. */
export async function collectStats(
  deps: StatsDependencies,
  window: Millis,
  step: Millis = MINUTE,
  scan?: StatsDependencies['scan'],
): Promise<CollectedStats> {
  const store = await deps.store()
  const now = deps.now()
  const buckets = await deps.recorder.readSince(floorTo(now - window, step))
  return { now, buckets, depths: scan === undefined ? await readDepths(store) : sumDepths(await scan.read()) }
}

/** `computeWindowStats` computes the total over a part of the collected window. */
export function computeWindowStats({ now, buckets, depths }: CollectedStats, window: Millis): WindowStats {
  const start = floorToMinute(now - window)
  const inside = buckets.filter(({ at, span }) => at + span > start)
  return toWindowStats(sumCounts(inside), depths.total.failing, Math.max(1, now - windowStart(inside, start)))
}

function floorToMinute(at: Millis): Millis {
  return floorTo(at, MINUTE)
}

function windowStart(cells: readonly StoredBucket[], start: Millis): Millis {
  return cells.reduce((first, { at }) => Math.min(first, at), floorToMinute(start))
}

/** Waiting events are read from the lanes, so that dropped and purged events no longer count. */
type WaitingDepth = Pick<Depth, 'waiting' | 'failing' | 'oldest'>

const NO_WAITING_DEPTH: WaitingDepth = { waiting: 0, failing: 0, oldest: undefined }

function parseStatsWindow(window: Duration): Millis {
  const ms = parseDuration(window, 'stats.window')
  if (ms >= MINUTE && ms <= LONGEST_WINDOW) return ms
  throw invalidOption(`stats.window must be from 1m to 7d; got ${JSON.stringify(window)}.`)
}

function toQueueStats(depth: WaitingDepth): QueueStats {
  return { depth: countWaiting(depth), oldest: depth.oldest }
}

function countWaiting({ waiting, failing }: WaitingDepth): number {
  return waiting + failing
}

function toWindowStats(counts: Counts, failing: number, covered: Millis): WindowStats {
  const { received, done, dropped, ms, timedCount } = counts
  const dead = Math.max(0, counts.dead - counts.revived)
  const ended = done + dropped + dead + failing
  return {
    received,
    receivedPerMinute: (received * MINUTE) / covered,
    done,
    dropped,
    dead,
    deadPerDay: (dead * DAY) / covered,
    failing,
    failureRate: ended === 0 ? undefined : (dead + failing) / ended,
    meanMs: timedCount === 0 ? undefined : ms / timedCount,
    p95Ms: counts.quantile(0.95),
  }
}

function sumCounts(cells: readonly StoredBucket[]): Counts {
  const total = new Counts()
  for (const { kinds } of cells) for (const [, , ...counts] of kinds) total.add(counts)
  return total
}

type GroupNames = Pick<StatsGroup, 'source' | 'type' | 'flow'>

function groupCounts(
  cells: readonly StoredBucket[],
  by: StatsBy | undefined,
  waiting: readonly string[],
): readonly (readonly [GroupNames, Counts])[] {
  if (by === undefined) return []
  const groups = new CountsTable(Infinity)
  for (const cell of cells) {
    for (const [first, second, ...counts] of by === 'flow' ? cell.flows : cell.kinds) {
      groups.get(by === 'type' ? '' : first, by === 'source' ? '' : second).add(counts)
    }
  }
  // A flow without any activity in the window may be stuck, and must appear.
  if (by === 'flow') for (const flow of waiting) groups.get(flow, '')
  const named = [...groups.rows()].toSorted(([a, b], [c, d]) => compare(a, c) || compare(b, d))
  return named.map(([first, second, counts]) => [toGroupNames(by, first, second), counts])
}

function toGroupNames(by: StatsBy, first: string, second: string): GroupNames {
  switch (by) {
    case 'flow':
      return { flow: first }
    case 'source':
      return { source: first }
    case 'type':
      return { type: second }
    case 'source,type':
      return { source: first, type: second }
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
