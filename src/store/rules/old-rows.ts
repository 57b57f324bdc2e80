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

/** Goes on, or begins. `all`: also those that were left before are to be looked at. */
export function lookOn<Rows extends OldRows>(rows: Rows, now: Millis, all = false): Rows {
  if (rows.at > 0) return rows
  // A clock that was set back is no reason to wait for it.
  const isWhole = all || rows.left <= FEW || Math.abs(now - rows.whole) >= WHOLE_EVERY
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
  return {
    ...rows,
    at: isThrough ? 0 : last,
    upTo: Math.max(rows.upTo, last),
    left: rows.left + left,
    whole: isThrough && rows.isWhole ? now : rows.whole,
  }
}

/** The moment before which all is old that is kept for so long. */
export function before(now: Millis, kept: Millis): Millis {
  return kept >= NEVER ? 0 : now - kept
}
