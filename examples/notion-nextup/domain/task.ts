// A task as ranking sees it: what counts of a page, and nothing of how Notion writes it.
import { assigneesOf, dayOf, DONE, numberOf, statusOf, type Page } from './properties.ts'
import type { Day } from './business-days.ts'

export interface Task {
  readonly id: string
  /** Whose list its Queue Rank is a place in: a task of several people has one rank, in the first one's list. */
  readonly owner: string | undefined
  readonly isDone: boolean
  readonly importance: number
  readonly estimate: number
  readonly created: string
  readonly started: Day | undefined
  readonly due: Day | undefined
  /** The values that are in Notion now. */
  readonly rank: number | undefined
  readonly projected: Day | undefined
}

/** A task without an estimate counts as a day's work. */
const UNESTIMATED = 1

export function taskOf(page: Page): Task {
  return {
    id: page.id,
    owner: assigneesOf(page)[0]?.id,
    isDone: statusOf(page) === DONE,
    importance: numberOf(page, 'importance') ?? 0,
    estimate: Math.max(0, numberOf(page, 'estimate') ?? UNESTIMATED),
    created: page.created_time ?? '',
    started: dayOf(page, 'started'),
    due: dayOf(page, 'due'),
    rank: numberOf(page, 'rank'),
    projected: dayOf(page, 'projected'),
  }
}
