// Who was served when, held against what was promised: in order, never twice at once, and everybody alike.
import type { Millis } from 'sluice'
import { plan } from '../domain/plan.ts'
import { byImportance } from '../domain/ranking.ts'
import { taskOf } from '../domain/task.ts'
import { today, type Calendar } from '../domain/business-days.ts'
import { DATA_SOURCE } from '../stand-in/notion.ts'
import { pageObject, type StoredPage } from '../stand-in/page.ts'
import type { Page } from '../domain/properties.ts'

/** A user got a turn. */
export interface Turn {
  readonly user: string
  /** When the user became ready, and when the turn began, by the store's clock. */
  readonly due: Millis
  readonly began: Millis
  /** Infinity: it has not ended. */
  readonly ended: Millis
}

/**
 * A deadline is never set in the past. So one that is earlier than that of somebody who was served before was already there,
 * and passed, when that one was served: its turn came too late.
 */
export function inversions(turns: readonly Turn[]): number {
  let [latest, found] = [-Infinity, 0]
  for (const { due } of turns) {
    if (due < latest) found++
    latest = Math.max(latest, due)
  }
  return found
}

/** Turns that began while another one of the same user was on. */
export function overlaps(turns: readonly Turn[]): number {
  const busy = new Map<string, Millis>()
  let found = 0
  for (const { user, began, ended } of turns.toSorted((one, other) => one.began - other.began)) {
    const until = busy.get(user) ?? -Infinity
    if (began < until) found++
    busy.set(user, Math.max(until, ended))
  }
  return found
}

/** Jain's index of fairness: 1 if all are alike, 1/n if one has everything. */
export function jain(values: readonly number[]): number {
  const sum = values.reduce((all, value) => all + value, 0)
  const squares = values.reduce((all, value) => all + value * value, 0)
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares)
}

/** Of each user, how long it took on average from being ready to the end of the turn. */
export function meanResponses(turns: readonly Turn[]): readonly Millis[] {
  const ended = turns.filter((turn) => turn.ended < Infinity)
  return [...Map.groupBy(ended, ({ user }) => user).values()].map(
    (own) => own.reduce((sum, turn) => sum + turn.ended - turn.due, 0) / own.length,
  )
}

/** Users whose tasks do not stand as their last edit asks for: what a run would still have to write. */
export function unranked(
  pages: Iterable<StoredPage>,
  now: Millis,
  calendarOf: (user: string) => Calendar,
): readonly string[] {
  const tasks = [...pages]
    .filter((page) => !page.isTrashed)
    .map((page) => taskOf(pageObject(page, DATA_SOURCE) as unknown as Page))
  const owners = Map.groupBy(tasks, ({ owner }) => owner)
  return [...owners].flatMap(([user, own]) => {
    if (user === undefined) return []
    const calendar = calendarOf(user)
    return plan(own, { user, calendar, today: today(now, calendar), ranking: byImportance }).length > 0 ? [user] : []
  })
}
