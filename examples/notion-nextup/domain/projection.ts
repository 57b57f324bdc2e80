// When each task of a list will be done, if they are worked on one after the other, on business days only.
import { businessDayFrom, businessDaysAfter, type Calendar, type Day } from './business-days.ts'
import type { Task } from './task.ts'

/** A day that is partly spoken for: half a day's work leaves the other half to the next task. */
interface Moment {
  readonly day: Day
  /** From 0 to less than 1. */
  readonly used: number
}

/** By task. One that has begun counts from its Task Started Date, any other from when those before it are done, or today. */
export function project(tasks: readonly Task[], today: Day, calendar: Calendar): ReadonlyMap<string, Day> {
  const projected = new Map<string, Day>()
  let free: Moment = { day: businessDayFrom(today, calendar), used: 0 }
  for (const task of tasks) {
    const begins = task.started === undefined ? free : { day: businessDayFrom(task.started, calendar), used: 0 }
    const { done, next } = work(begins, task.estimate, calendar)
    // It should have been done by now and is not: no sooner than today.
    const isLate = done < today
    projected.set(task.id, isLate ? businessDayFrom(today, calendar) : done)
    if (!isLate && isAfter(next, free)) free = next
  }
  return projected
}

interface Worked {
  readonly done: Day
  readonly next: Moment
}

/** Hundredths: sums of 0.1 must not come to a little more than a day. */
const PARTS = 100

function work(begins: Moment, days: number, calendar: Calendar): Worked {
  const parts = Math.round((begins.used + days) * PARTS)
  const whole = Math.floor(parts / PARTS)
  const used = (parts % PARTS) / PARTS
  const next = { day: businessDaysAfter(begins.day, whole, calendar), used }
  // A task that fills its last day is done on it; the next one begins the day after.
  const last = Math.max(0, Math.ceil(parts / PARTS) - 1)
  return { done: businessDaysAfter(begins.day, last, calendar), next }
}

function isAfter(one: Moment, other: Moment): boolean {
  return one.day === other.day ? one.used > other.used : one.day > other.day
}
