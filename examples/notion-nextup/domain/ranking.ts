// The order in which a user should do tasks. Modes are functions with one signature, so the caller need not know the mode.
import { daysBetween, type Day } from './business-days.ts'
import type { Task } from './task.ts'

/** The most urgent first. The same tasks always come in the same order, or every run would write all of them. */
export type Ranking = (tasks: readonly Task[], today: Day) => readonly Task[]

export const byImportance: Ranking = (tasks) => inOrder(tasks, (task) => task.importance)

export interface Weights {
  readonly importance: number
  readonly due: number
  readonly started: number
  readonly brief: number
}

const WEIGHTS: Weights = { importance: 1, due: 4, started: 2, brief: 0.5 }

/** A task that is due this far ahead is not urgent yet; one that is overdue is as urgent as can be. */
const HORIZON = 30
const BRIEF = 1

export function weighted(weights: Weights = WEIGHTS): Ranking {
  return (tasks, today) =>
    inOrder(tasks, (task) => {
      const left = task.due === undefined ? HORIZON : Math.min(HORIZON, Math.max(0, daysBetween(today, task.due)))
      return (
        weights.importance * task.importance +
        weights.due * (1 - left / HORIZON) +
        weights.started * Number(task.started !== undefined) +
        weights.brief * Number(task.estimate <= BRIEF)
      )
    })
}

export const RANKINGS: Readonly<Record<string, Ranking>> = { importance: byImportance, weighted: weighted() }

/** Of two that weigh the same the older one comes first. */
function inOrder(tasks: readonly Task[], weightOf: (task: Task) => number): readonly Task[] {
  return tasks
    .map((task) => ({ task, weight: weightOf(task) }))
    .toSorted((one, other) => other.weight - one.weight || compare(one.task, other.task))
    .map(({ task }) => task)
}

function compare(one: Task, other: Task): number {
  if (one.created !== other.created) return one.created < other.created ? -1 : 1
  return one.id < other.id ? -1 : 1
}
