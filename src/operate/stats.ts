// The figures of an app over a window: how much came, how long it took, how much failed, and how much waits right now.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import { Counts, Table, type WrittenCell } from '../observe/tallies-count.ts'
import { depthsOf, type Depth } from '../observe/tallies-depth.ts'
import type { Tallies } from '../observe/tallies.ts'
import type { Store } from '../store/contract/index.ts'

type StatsBy = 'source' | 'type' | 'source,type' | 'flow'

export interface StatsAsked {
  /** From a minute to 7 days; a day unless said. */
  readonly window?: Duration
  /** Nothing unless said: only the sum of all. */
  readonly by?: StatsBy
}

/** What happened in the window. Counts of ends are of events in flows: one that two flows got ends twice. */
interface StatsFigures {
  readonly received: number
  readonly receivedPerMinute: number
  readonly done: number
  readonly dropped: number
  readonly dead: number
  readonly deadPerDay: number
  /** Began to fail in the window and have not ended since. */
  readonly failing: number
  /** From 0 to 1: those that are dead or failing, of these and all that ended. Undefined when nothing ended. */
  readonly failureRate: number | undefined
  /** From arrival to done. The percentile is true to a tenth. */
  readonly meanMs: number | undefined
  readonly p95Ms: number | undefined
}

/** What waits right now: of a flow, or of all. It is not kept by source and type. */
interface StatsDepth {
  /** Events that wait, and those that failed and wait for their next attempt. */
  readonly depth: number
  /** Since when the work that waits longest has been due. */
  readonly oldest: Millis | undefined
}

interface StatsGroup extends StatsFigures, Partial<StatsDepth> {
  readonly source?: string
  readonly type?: string
  readonly flow?: string
}

export interface StatsAnswer {
  readonly now: Millis
  /** Where the window really begins: at a full minute, beyond two hours at full ten, beyond a day at a full hour. */
  readonly from: Millis
  readonly total: StatsFigures & StatsDepth
  /** False: more lanes wait than were looked at, and `depth` is a lower bound. */
  readonly depthIsWhole: boolean
  /** By name. */
  readonly groups: readonly StatsGroup[]
}

export interface StatsParts {
  readonly store: () => Promise<Store>
  readonly tallies: Pick<Tallies, 'since'>
  readonly now: () => Millis
}

const MINUTE: Millis = 60_000
const DAY: Millis = 86_400_000
const LONGEST: Millis = 7 * DAY
const KNOWN: ReadonlySet<string> = new Set<keyof StatsAsked>(['window', 'by'])
const BY: ReadonlySet<string> = new Set<StatsBy>(['source', 'type', 'source,type', 'flow'])

export async function stats(parts: StatsParts, asked: StatsAsked = {}): Promise<StatsAnswer> {
  onlyKnown(asked, KNOWN, 'stats: ')
  const { by } = asked
  if (by !== undefined && !BY.has(by))
    throw invalid(`stats: by is ${JSON.stringify(by)}; it is ${[...BY].join(' or ')}.`)
  const window = windowOf(asked.window ?? '24h')
  const store = await parts.store()
  const now = parts.now()
  const start = Math.floor((now - window) / MINUTE) * MINUTE
  const [cells, depths] = [await parts.tallies.since(start), await depthsOf(store)]
  const from = cells.reduce((first, { at }) => Math.min(first, at), start)
  const figures = (counts: Counts): StatsFigures => figuresOf(counts, Math.max(1, now - from))
  const ofFlow = (flow: string | undefined): Partial<StatsDepth> =>
    flow === undefined ? {} : depthOf(depths.flows.get(flow) ?? NOTHING_WAITS)
  return {
    now,
    from,
    total: { ...figures(totalOf(cells)), ...depthOf(depths.total) },
    depthIsWhole: depths.isWhole,
    groups: groupsOf(cells, by, [...depths.flows.keys()]).map(([names, counts]) => ({
      ...names,
      ...figures(counts),
      ...ofFlow(names.flow),
    })),
  }
}

const NOTHING_WAITS: Pick<Depth, 'waiting' | 'failing' | 'oldest'> = { waiting: 0, failing: 0, oldest: undefined }

function windowOf(window: Duration): Millis {
  const ms = millis(window, 'stats.window')
  if (ms >= MINUTE && ms <= LONGEST) return ms
  throw invalid(`stats.window is ${JSON.stringify(window)}; it is from 1m to 7d.`)
}

function depthOf({ waiting, failing, oldest }: Pick<Depth, 'waiting' | 'failing' | 'oldest'>): StatsDepth {
  return { depth: waiting + failing, oldest }
}

function figuresOf(counts: Counts, covered: Millis): StatsFigures {
  const { received, done, dropped, dead, ms, timed } = counts
  const failing = Math.max(0, counts.failing - counts.mended)
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
    meanMs: timed === 0 ? undefined : ms / timed,
    p95Ms: counts.quantile(0.95),
  }
}

function totalOf(cells: readonly WrittenCell[]): Counts {
  const total = new Counts()
  for (const { kinds } of cells) for (const [, , ...counts] of kinds) total.add(counts)
  return total
}

type Names = Pick<StatsGroup, 'source' | 'type' | 'flow'>

function groupsOf(
  cells: readonly WrittenCell[],
  by: StatsBy | undefined,
  waiting: readonly string[],
): readonly (readonly [Names, Counts])[] {
  if (by === undefined) return []
  const groups = new Table(Infinity)
  for (const cell of cells) {
    for (const [first, second, ...counts] of by === 'flow' ? cell.flows : cell.kinds) {
      groups.at(by === 'type' ? '' : first, by === 'source' ? '' : second).add(counts)
    }
  }
  // A flow that has done nothing in the window, and is stuck, is what somebody looks for.
  if (by === 'flow') for (const flow of waiting) groups.at(flow, '')
  const named = [...groups.rows()].toSorted(([a, b], [c, d]) => compare(a, c) || compare(b, d))
  return named.map(([first, second, counts]) => [namesOf(by, first, second), counts])
}

function namesOf(by: StatsBy, first: string, second: string): Names {
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

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', what)
}
