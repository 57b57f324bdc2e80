// How far a look at old rows has come. Most of what is found once, and has to stay, has to stay for long: to look through all of it
// again and again would take ever longer. So a look begins where the last one ended, and only now and then at the very first row.
import { NEVER, type Millis } from '../../clock.ts'

export interface OldRows {
  /** Where the look goes on; 0: it is through. */
  readonly at: number
  /** All up to here were looked at, at one time or another. */
  readonly upTo: number
  /** How many of these were left. */
  readonly left: number
  /** Whether the look that is under way, or the last one, began at the first row. */
  readonly isWhole: boolean
  /** When such a look was last through. */
  readonly whole: Millis
}

export const UNSEEN: OldRows = { at: 0, upTo: 0, left: 0, isWhole: false, whole: 0 }

const WHOLE_EVERY: Millis = 3_600_000
/** So few can be looked at each time. */
const FEW = 2_000

/** Nobody is that far ahead of the time by chance. */
const OUT_OF_PLACE: Millis = 3_600_000

/** Goes on, or begins. `all`: also those that were left before are to be looked at. */
export function lookOn<Rows extends OldRows>(rows: Rows, now: Millis, all = false): Rows {
  if (rows.at > 0) return rows
  // A clock that was set back is no reason to wait for it.
  const isDue = now > 0 && Math.abs(now - rows.whole) >= WHOLE_EVERY
  const isWhole = all || rows.left <= FEW || isDue
  return isWhole ? { ...rows, isWhole, left: 0 } : { ...rows, isWhole, at: rows.upTo }
}

export interface Page {
  /** The last that was looked at; 0: none was. */
  readonly last: number
  readonly left: number
  /** Nothing behind it can go now. */
  readonly isThrough: boolean
}

export function lookedAt<Rows extends OldRows>(rows: Rows, now: Millis, { last, left, isThrough }: Page): Rows {
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
 * How many of a page are to be looked at: up to the last that is old. Behind it all are young, for they stand in the order of their
 * times, but for a few: a clock that was ahead, or numbers that were drawn early. Those are passed by.
 */
export function oldIn<Row>(page: readonly Row[], now: Millis, youngest: Millis, timeOf: (row: Row) => Millis): number {
  const mayBeOld = (time: Millis): boolean => time <= youngest || time > now + OUT_OF_PLACE
  return page.findLastIndex((row) => mayBeOld(timeOf(row))) + 1
}

/** The moment before which all is old that is kept for so long. */
export function before(now: Millis, kept: Millis): Millis {
  return kept >= NEVER ? 0 : now - kept
}
