// The arrivals of events over the last day, in steps. Counts by source and type come from the stats; other filters need the events
// themselves, of which a bounded number is read.
import type { Clock, Millis } from '../clock.ts'
import { invalidOption } from '../validate/options.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { floorTo, MINUTE } from '../observe/stats/rollups.ts'
import type { StatsRecorder } from '../observe/stats/recorder.ts'
import type { FindReply, RecordFilter, Store } from '../store/contract/index.ts'

export interface EventHistogram {
  readonly step: Millis
  /** The start of the first step. */
  readonly from: Millis
  readonly counts: readonly number[]
  /** False if there were more events than were read: older steps then lack some. */
  readonly complete: boolean
}

export interface EventHistogramDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly recorder: Pick<StatsRecorder, 'readSince'>
}

const DAY: Millis = 24 * 60 * MINUTE
const MAX_STEPS = 144
const PAGE = 1_000
const MAX_PAGES = 10
const MAX_MS: Millis = 50
const COUNTED_FIELDS: ReadonlySet<string> = new Set(['source', 'type', 'withoutSource'])

export async function countByTime(
  deps: EventHistogramDependencies,
  filter: RecordFilter,
  step: Duration = '30m',
): Promise<EventHistogram> {
  const ms = parseDuration(step, 'events.step')
  if (ms < DAY / MAX_STEPS || ms > DAY || ms % (10 * MINUTE) !== 0)
    throw invalidOption(`events.step must be a whole multiple of 10m, up to 24h; got ${JSON.stringify(step)}.`)
  const store = await deps.store()
  const { now } = await store.readDocs({ kind: 'flow', ids: [], after: '', n: 1 })
  const from = floorTo(now - DAY, ms)
  const counts = Array.from({ length: Math.floor((now - from) / ms) + 1 }, () => 0)
  const add = (at: Millis, n: number): void => {
    const bucket = Math.floor((at - from) / ms)
    if (bucket >= 0 && bucket < counts.length) counts[bucket] = (counts[bucket] ?? 0) + n
  }
  const isCounted = Object.entries(filter).every(([name, value]) => value === undefined || COUNTED_FIELDS.has(name))
  const complete = isCounted ? await addStats(deps, filter, from, add) : await addEvents(deps, { filter, from }, add)
  return { step: ms, from, counts, complete }
}

type AddCount = (at: Millis, n: number) => void

async function addStats(
  { recorder }: EventHistogramDependencies,
  { source, type }: RecordFilter,
  from: Millis,
  add: AddCount,
): Promise<boolean> {
  for (const { at, kinds } of await recorder.readSince(from)) {
    for (const [first, second, [received = 0]] of kinds) {
      if ((source ?? first) === first && (type ?? second) === second) add(at, received)
    }
  }
  return true
}

async function addEvents(
  { store, clock }: EventHistogramDependencies,
  { filter, from }: { readonly filter: RecordFilter; readonly from: Millis },
  add: AddCount,
): Promise<boolean> {
  const opened = await store()
  const startedAt = clock.monotonic()
  let cursor: string | undefined = ''
  for (let pages = 0; cursor !== undefined && pages < MAX_PAGES; pages++) {
    if (pages > 0 && clock.monotonic() - startedAt > MAX_MS) return false
    const page: FindReply<'events'> = await opened.find({ kind: 'events', filter, cursor, n: PAGE })
    for (const { arrived } of page.items) add(arrived, 1)
    if ((page.items.at(-1)?.arrived ?? Infinity) < from) return true
    cursor = page.next
  }
  return cursor === undefined
}
