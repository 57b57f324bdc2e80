// Days on which work is done: no weekends, no holidays, and "today" where the user lives.

/** `2026-01-31`. As text, days compare as they follow each other, and belong to no time zone. */
export type Day = string

export interface Calendar {
  readonly timeZone: string
  readonly holidays: ReadonlySet<Day>
}

const DAY_MS = 86_400_000
const SUNDAY = 0
const SATURDAY = 6

/** What day it is now in that time zone. */
export function today(now: number, { timeZone }: Calendar): Day {
  // Sweden writes dates as ISO 8601 does.
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(now)
}

export function isBusinessDay(day: Day, { holidays }: Calendar): boolean {
  const weekday = new Date(instantOf(day)).getUTCDay()
  return weekday !== SUNDAY && weekday !== SATURDAY && !holidays.has(day)
}

/** The day itself if it is one, else the next that is. */
export function businessDayFrom(day: Day, calendar: Calendar): Day {
  let on = day
  while (!isBusinessDay(on, calendar)) on = nextDay(on)
  return on
}

/** So many business days after the one that `day` falls on: 0 is that day. */
export function businessDaysAfter(day: Day, days: number, calendar: Calendar): Day {
  let on = businessDayFrom(day, calendar)
  for (let left = days; left > 0; left--) on = businessDayFrom(nextDay(on), calendar)
  return on
}

export function daysBetween(from: Day, to: Day): number {
  return Math.round((instantOf(to) - instantOf(from)) / DAY_MS)
}

function nextDay(day: Day): Day {
  return new Date(instantOf(day) + DAY_MS).toISOString().slice(0, 10)
}

function instantOf(day: Day): number {
  return Date.parse(`${day}T00:00:00Z`)
}
