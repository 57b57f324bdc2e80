// How far a look at old rows has come. Most of what is found once, and has to stay, has to stay for long: to look through all of it
// again and again would take ever longer. So a look begins where the last one ended, and only now and then at the very first row.
import type { Millis } from '../../clock.ts'

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

/** `all`: also those that were left before. */
export function lookOn(rows: OldRows, now: Millis, all = false): OldRows {
  if (rows.at > 0) return rows
  // A clock that was set back is no reason to wait for it.
  const isWhole = all || rows.left <= FEW || Math.abs(now - rows.whole) >= WHOLE_EVERY
  return isWhole ? { ...UNSEEN, whole: now } : { ...rows, at: rows.upTo }
}

export interface Page {
  /** The last that is old enough to go; 0: none is. */
  readonly last: number
  readonly left: number
  /** Nothing behind it is old. */
  readonly isThrough: boolean
}

export function lookedAt(rows: OldRows, { last, left, isThrough }: Page): OldRows {
  const upTo = Math.max(rows.upTo, last)
  return { ...rows, at: isThrough ? 0 : upTo, upTo, left: rows.left + left }
}
