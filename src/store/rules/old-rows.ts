// How far a look at old rows has come. Most of what is found once, and has to stay, has to stay for long: to look through all of it
// again and again would take ever longer. So a look begins where the last one ended, and only now and then at the very first row.
import { NEVER, type Millis } from '../../clock.ts'

export interface OldRows {
  /** Where the look goes on; 0: it is through. */
  readonly at: number
  /** All up to here were looked at. */
  readonly upTo: number
  /** How many of these were left. */
  readonly left: number
  /** When a look last began at the first row. */
  readonly whole: Millis
}

export const UNSEEN: OldRows = { at: 0, upTo: 0, left: 0, whole: 0 }

const WHOLE_EVERY: Millis = 3_600_000
/** So few can be looked at each time. */
const FEW = 2_000

export function isFew(rows: OldRows): boolean {
  return rows.left <= FEW
}

/** Whether a look begins at the first row. `all`: also those that were left before are to be looked at. */
export function isWhole(rows: OldRows, now: Millis, all = false): boolean {
  if (rows.at > 0) return false
  // A clock that was set back is no reason to wait for it.
  return all || isFew(rows) || Math.abs(now - rows.whole) >= WHOLE_EVERY
}

export function lookOn<Rows extends OldRows>(rows: Rows): Rows {
  return rows.at > 0 ? rows : { ...rows, at: rows.upTo }
}

export interface Page {
  /** The last that is old enough to go; 0: none is. */
  readonly last: number
  readonly left: number
  /** Nothing behind it is old. */
  readonly isThrough: boolean
}

export function lookedAt<Rows extends OldRows>(rows: Rows, { last, left, isThrough }: Page): Rows {
  const upTo = Math.max(rows.upTo, last)
  return { ...rows, at: isThrough ? 0 : upTo, upTo, left: rows.left + left }
}

/** The moment before which all is old that is kept for so long. */
export function before(now: Millis, kept: Millis): Millis {
  return kept >= NEVER ? 0 : now - kept
}
