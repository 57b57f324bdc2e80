// `expireEvents` removes old events by age and by bytes (L23). If an identity must stay known for longer (L10), it
// first removes the bytes and later the row.
import { NEVER, type Millis } from '../../clock.ts'
import type { RetentionPolicy } from '../contract/index.ts'
import { createNeedCheck, wipeEvent } from './purge.ts'
import type { EventRow } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

/** `ScanCursor` is the progress of a scan for old rows. Most rows that must stay must stay for long, so visiting them again each time
    would take ever longer. A scan therefore continues where the last one ended, and only sometimes starts at the first row. */
export interface ScanCursor {
  /** Where the scan continues; 0: the scan is complete. */
  readonly at: number
  /** Every row up to here has been visited at some time. */
  readonly upTo: number
  /** How many of the visited rows were left. */
  readonly left: number
  /** Whether the current or last scan began at the first row. */
  readonly isWhole: boolean
  /** The time at which such a full scan last completed. */
  readonly whole: Millis
}

export const INITIAL_CURSOR: ScanCursor = { at: 0, upTo: 0, left: 0, isWhole: false, whole: 0 }

const FULL_SCAN_INTERVAL: Millis = 3_600_000
/** Few enough rows to visit with every scan. */
const MAX_LEFT_TO_RESCAN = 2_000

/** A clock further ahead than this is not ordinary skew. */
const CLOCK_SKEW_TOLERANCE: Millis = 3_600_000

/** `continueScan` continues a scan or starts the next one. With `all`, the new scan visits the rows that were left before, too. */
export function continueScan<Rows extends ScanCursor>(rows: Rows, now: Millis, all = false): Rows {
  if (rows.at > 0) return rows
  // If the clock was set back, the full scan must not wait for the clock to catch up.
  const isDue = now > 0 && Math.abs(now - rows.whole) >= FULL_SCAN_INTERVAL
  const isWhole = all || rows.left <= MAX_LEFT_TO_RESCAN || isDue
  return isWhole ? { ...rows, isWhole, left: 0 } : { ...rows, isWhole, at: rows.upTo }
}

export interface ScannedPage {
  /** The last visited row; 0: none. */
  readonly last: number
  readonly left: number
  /** No row behind `last` can be removed now. */
  readonly isThrough: boolean
}

export function advanceCursor<Rows extends ScanCursor>(
  rows: Rows,
  now: Millis,
  { last, left, isThrough }: ScannedPage,
): Rows {
  const isEnd = isThrough && rows.isWhole
  return {
    ...rows,
    at: isThrough ? 0 : last,
    upTo: isEnd ? last : Math.max(rows.upTo, last),
    left: rows.left + left,
    whole: isEnd ? now : rows.whole,
  }
}

/**
 * `countOldRows` returns how many rows of a page to visit: up to the last old one. Rows are in time order, except for a few with a
 * clock that was ahead or with a number drawn early. The exceptions are skipped.
 */
export function countOldRows<Row>(
  page: readonly Row[],
  now: Millis,
  youngest: Millis,
  timeOf: (row: Row) => Millis,
): number {
  const mayBeOld = (time: Millis): boolean => time <= youngest || time > now + CLOCK_SKEW_TOLERANCE
  return page.findLastIndex((row) => mayBeOld(timeOf(row))) + 1
}

/** `computeCutoff` returns the time up to which rows with this retention are old. */
export function computeCutoff(now: Millis, kept: Millis): Millis {
  return kept >= NEVER ? 0 : now - kept
}

/**
 * `EventScanCursor` is the progress of the scans for old events. A second scan follows the first and visits the events that the
 * first one left.
 */
export interface EventScanCursor extends ScanCursor {
  /** The shortest dedupe time among the events that the first scan left. */
  readonly known: Millis
  /** The position that the second scan has reached. */
  readonly forgotten: number
  /** The arrival of the first event behind that position; 0 if unknown. */
  readonly ahead: Millis
  /** Set while a scan frees bytes, oldest events first. `freed` counts the bytes so far. */
  readonly forBytes: { readonly freed: number } | undefined
  /** The time of the last such scan that freed nothing. */
  readonly inVain: Millis
}

export const INITIAL_EVENT_CURSOR: EventScanCursor = {
  ...INITIAL_CURSOR,
  known: NEVER,
  forgotten: 0,
  ahead: 0,
  forBytes: undefined,
  inVain: 0,
}

/** The pause after a scan for bytes that freed nothing. */
const SIZE_SCAN_BACKOFF: Millis = 60_000

export interface EventExpiryResult {
  readonly gone: number
  readonly more: boolean
  readonly after: EventScanCursor
}

export function expireEvents(
  work: CommitContext,
  policy: RetentionPolicy,
  looked: EventScanCursor,
  n: number,
): EventExpiryResult {
  const byAge = expireOldEvents(work, policy, looked, n)
  // A full scan has also removed the events whose identity has expired.
  if (byAge.after.isWhole) return byAge
  const known = expireKnownIdentities(work, policy, byAge.after, n)
  return { gone: byAge.gone + known.gone, more: byAge.more || known.more, after: known.after }
}

function expireOldEvents(
  work: CommitContext,
  policy: RetentionPolicy,
  looked: EventScanCursor,
  n: number,
): EventExpiryResult {
  const over = policy.bytes < NEVER ? work.tables.records.stats(work.now).bytes - policy.bytes : 0
  const from = startEventScan(looked, work.now, over)
  let above = from.forBytes === undefined ? 0 : over
  const youngest = computeCutoff(work.now, Math.min(NEVER, ...Object.values(policy.events)))
  const arrivals = work.tables.events.findArrivals(from.at, n)
  const count = countOldArrivals(arrivals, work.now, youngest)
  const lastOld = arrivals[count - 1]?.seq ?? 0
  const wanted = above > 0 ? n : count
  const page = wanted === 0 ? [] : work.tables.events.findOldest(from.at, wanted)
  let { known } = from
  let [gone, last, left, freed] = [0, from.at, 0, from.forBytes?.freed ?? 0]
  const reached = (isThrough: boolean): EventExpiryResult => {
    const forBytes = from.forBytes && !isThrough ? { freed } : undefined
    const inVain = from.forBytes && isThrough && freed === 0 ? work.now : from.inVain
    const after = advanceCursor({ ...from, known, forBytes, inVain }, work.now, { last, left, isThrough })
    return { gone, more: after.at > 0, after }
  }
  if (page.length === 0) return reached(true)
  const expire = createExpirer(work)
  for (const event of page) {
    if (event.seq > lastOld && above <= 0) return reached(count < n)
    last = event.seq
    const became = isExpired(event, policy, work.now) || above > 0 ? expire(event) : 'kept'
    if (became === 'emptied' || became === 'known') known = Math.min(known, event.dedupeUntil - event.arrived)
    if (became !== 'removed') left++
    if (became === 'kept' || became === 'known') continue
    const bytes = event.body.length + event.request.length
    above -= bytes
    freed += bytes
    gone++
  }
  return reached((wanted === n ? arrivals.length : count) < n)
}

/** Counts the events to visit by their times alone. Bodies are read only if an event is old, and usually none is. */
function countOldArrivals(arrivals: readonly Pick<EventRow, 'arrived'>[], now: Millis, youngest: Millis): number {
  return countOldRows(arrivals, now, youngest, ({ arrived }) => arrived)
}

/**
 * Starts or continues a scan. A scan for bytes starts at the first row, even while another scan is in progress: the oldest events
 * go first.
 */
function startEventScan(looked: EventScanCursor, now: Millis, above: number): EventScanCursor {
  if (looked.forBytes !== undefined && looked.at > 0) return looked
  const forBytes = above > 0 && Math.abs(now - looked.inVain) >= SIZE_SCAN_BACKOFF ? { freed: 0 } : undefined
  const begun = continueScan(forBytes === undefined ? looked : { ...looked, at: 0 }, now, forBytes !== undefined)
  return begun.isWhole && begun.at === 0
    ? { ...begun, known: NEVER, forgotten: 0, ahead: 0, forBytes }
    : { ...begun, forBytes }
}

function isExpired(event: EventRow, policy: RetentionPolicy, now: Millis): boolean {
  return event.arrived <= computeCutoff(now, policy.events[event.source] ?? policy.events[''] ?? NEVER)
}

/** Removes a finished event. While its identity must stay known, only its bytes are removed. */
function createExpirer(work: CommitContext): (event: EventRow) => 'removed' | 'emptied' | 'known' | 'kept' {
  const isNeeded = createNeedCheck(work)
  return (event) => {
    if (isNeeded(event)) return 'kept'
    if (event.dedupeUntil <= work.now) {
      work.tables.events.remove(event.seq)
      return 'removed'
    }
    if (event.purgedHash !== '') return 'known'
    wipeEvent(work, event)
    return 'emptied'
  }
}

/** Removes events whose identity may be forgotten. Events with a longer dedupe time wait for the next full scan. */
function expireKnownIdentities(
  work: CommitContext,
  policy: RetentionPolicy,
  looked: EventScanCursor,
  n: number,
): EventExpiryResult {
  const youngest = computeCutoff(work.now, looked.known)
  if (looked.ahead > youngest || looked.known >= NEVER) return { gone: 0, more: false, after: looked }
  const arrivals = work.tables.events.findArrivals(looked.forgotten, n).filter(({ seq }) => seq <= looked.upTo)
  const count = countOldArrivals(arrivals, work.now, youngest)
  const page = count === 0 ? [] : work.tables.events.findOldest(looked.forgotten, count)
  const seen = page.filter((event) => event.seq <= looked.upTo)
  const expire = createExpirer(work)
  const became = seen.map((event) => (isExpired(event, policy, work.now) ? expire(event) : 'kept'))
  const removed = became.filter((kind) => kind === 'removed').length
  const emptied = became.filter((kind) => kind === 'emptied').length
  const after = {
    ...looked,
    left: looked.left - removed,
    forgotten: seen.at(-1)?.seq ?? looked.forgotten,
    ahead: arrivals[count]?.arrived ?? 0,
  }
  return { gone: removed + emptied, more: seen.length === n, after }
}
