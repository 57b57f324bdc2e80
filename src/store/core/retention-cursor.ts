// `ScanCursor` is the progress of a scan for old rows. Most rows that must stay must stay for long, so visiting them
// again each time would take ever longer. A scan therefore continues where the last one ended, and only sometimes
// starts at the first row.
import { NEVER, type Millis } from '../../clock.ts'

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
 * clock that was ahead or with a number drawn early. Such rows are passed over.
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
