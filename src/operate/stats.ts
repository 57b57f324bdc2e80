// The figures of an app over a window: how much came, how long it took, how much failed, and how much waits right now.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import { Counts, Table, type WrittenCell } from '../observe/tallies-count.ts'
import { depthsOf, type Depth, type Depths } from '../observe/tallies-depth.ts'
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
  /** And have not recovered since. */
  readonly dead: number
  readonly deadPerDay: number
  /** Wait for another attempt right now. By source and type: began to fail in the window and have not ended since. */
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
  const { now, cells, depths } = await gather(parts, window)
  const from = fromOf(cells, now - window)
  const covered = Math.max(1, now - from)
  const withDepth = (counts: Counts, waits: Waits): StatsFigures & StatsDepth => ({
    ...figuresOf(counts, waits.failing, covered),
    ...depthOf(waits),
  })
  return {
    now,
    from,
    total: withDepth(totalOf(cells), depths.total),
    depthIsWhole: depths.isWhole,
    groups: groupsOf(cells, by, [...depths.flows.keys()]).map(([names, counts]) => ({
      ...names,
      ...(names.flow === undefined
        ? figuresOf(counts, Math.max(0, counts.failing - counts.mended), covered)
        : withDepth(counts, depths.flows.get(names.flow) ?? NOTHING_WAITS)),
    })),
  }
}

/** What figures over any window up to the one that was asked for are made of. */
export interface Gathered {
  readonly now: Millis
  readonly cells: readonly WrittenCell[]
  readonly depths: Depths
}

export async function gather(parts: StatsParts, window: Millis): Promise<Gathered> {
  const store = await parts.store()
  const now = parts.now()
  return { now, cells: await parts.tallies.since(minuteOf(now - window)), depths: await depthsOf(store) }
}

/** Of all, over a part of what was gathered. */
export function figuresOver({ now, cells, depths }: Gathered, window: Millis): StatsFigures {
  const start = minuteOf(now - window)
  const inside = cells.filter(({ at, span }) => at + span > start)
  return figuresOf(totalOf(inside), depths.total.failing, Math.max(1, now - fromOf(inside, start)))
}

function minuteOf(at: Millis): Millis {
  return Math.floor(at / MINUTE) * MINUTE
}

function fromOf(cells: readonly WrittenCell[], start: Millis): Millis {
  return cells.reduce((first, { at }) => Math.min(first, at), minuteOf(start))
}

/** What waits is looked at, so that what people dropped or purged no longer counts. */
type Waits = Pick<Depth, 'waiting' | 'failing' | 'oldest'>

const NOTHING_WAITS: Waits = { waiting: 0, failing: 0, oldest: undefined }

function windowOf(window: Duration): Millis {
  const ms = millis(window, 'stats.window')
  if (ms >= MINUTE && ms <= LONGEST) return ms
  throw invalid(`stats.window is ${JSON.stringify(window)}; it is from 1m to 7d.`)
}

function depthOf({ waiting, failing, oldest }: Waits): StatsDepth {
  return { depth: waiting + failing, oldest }
}

function figuresOf(counts: Counts, failing: number, covered: Millis): StatsFigures {
  const { received, done, dropped, ms, timed } = counts
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
