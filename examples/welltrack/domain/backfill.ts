// How a backfill is divided into the requests that Garmin accepts.
import { GARMIN_TYPES } from './garmin.ts'

export interface BackfillPart {
  readonly type: string
  /** In seconds since 1970. */
  readonly from: number
  readonly to: number
}

export const DAYS_MAX = 90
const DAY = 86_400
/** One request covers at most 90 days of health data, and 30 days of activities. */
const ACTIVITY_DAYS = 30

/** `until` is in seconds since 1970. The newest part of each type comes first, because people look at it first. */
export function backfillParts(days: number, until: number): readonly BackfillPart[] {
  if (!(Number.isInteger(days) && days >= 1 && days <= DAYS_MAX))
    throw new RangeError(`days must be a whole number from 1 to ${DAYS_MAX}; got ${days}.`)
  return GARMIN_TYPES.flatMap((type) => {
    const step = type === 'activities' ? ACTIVITY_DAYS : DAYS_MAX
    return Array.from({ length: Math.ceil(days / step) }, (_, n) => ({
      type,
      from: until - Math.min(days, (n + 1) * step) * DAY,
      to: until - n * step * DAY,
    }))
  })
}

export function daysOf({ from, to }: BackfillPart): number {
  return Math.ceil((to - from) / DAY)
}
