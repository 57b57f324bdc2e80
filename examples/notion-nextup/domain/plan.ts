// The writes that are necessary to rank a user's tasks: only tasks whose values differ, and only the values that differ.
import type { Calendar, Day } from './business-days.ts'
import { project } from './projection.ts'
import type { Ranking } from './ranking.ts'
import type { Task } from './task.ts'

/** A member that is not there stays as it is; `null` empties it. */
export interface Write {
  readonly id: string
  readonly rank?: number | null
  readonly projected?: Day
}

export interface PlanParts {
  readonly user: string
  readonly today: Day
  readonly calendar: Calendar
  readonly ranking: Ranking
}

export function plan(tasks: readonly Task[], { user, today, calendar, ranking }: PlanParts): readonly Write[] {
  const ordered = ranking(
    tasks.filter((task) => !task.isDone),
    today,
  )
  const projected = project(ordered, today, calendar)
  const open = ordered.map((task, at) => changed(task, { rank: at + 1, projected: projected.get(task.id) }))
  // What is done keeps the day it was projected for, and gives up its place.
  const done = tasks.filter((task) => task.isDone).map((task) => changed(task, { rank: null }))
  const owners = new Map(tasks.map((task) => [task.id, task.owner]))
  return [...open, ...done].filter((write) => Object.keys(write).length > 1 && owners.get(write.id) === user)
}

function changed(task: Task, wanted: { readonly rank: number | null; readonly projected?: Day | undefined }): Write {
  const { rank, projected } = wanted
  return {
    id: task.id,
    ...((task.rank ?? null) === rank ? {} : { rank }),
    ...(projected === undefined || projected === task.projected ? {} : { projected }),
  }
}
