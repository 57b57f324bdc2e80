// `withoutTexts` removes the texts of a run that a purge affects: an error may quote the purged event (L15).
import type { Attempt } from './lane.ts'

export const PURGED_TEXT = 'Removed by a purge.'
/** Reasons that the engine wrote, so they quote no event. */
const OWN_REASONS: ReadonlySet<string> = new Set(['', 'crashed', PURGED_TEXT])

interface RunTexts {
  readonly attempts: readonly Attempt[]
  readonly reason?: string
}

/** `withoutTexts` returns the same object if it has no text to lose. */
export function withoutTexts<T extends RunTexts>(run: T): T {
  const { attempts, reason = '' } = run
  const quotes = attempts.some(({ error }) => error !== PURGED_TEXT)
  if (!quotes && OWN_REASONS.has(reason)) return run
  const blank = attempts.map((attempt) => ({ ...attempt, error: PURGED_TEXT }))
  return { ...run, attempts: blank, ...(!OWN_REASONS.has(reason) && { reason: PURGED_TEXT }) }
}

interface Kin {
  readonly id: string
  readonly parent: string
}

/** `kinOf` returns the named runs and all runs connected to them by `parent`, in either direction: they share attempts (L8). */
export function kinOf(runs: readonly Kin[], named: ReadonlySet<string>): ReadonlySet<string> {
  const next = new Map<string, string[]>()
  const join = (from: string, to: string): void => void next.set(from, [...(next.get(from) ?? []), to])
  for (const { id, parent } of runs) {
    if (parent === '') continue
    join(id, parent)
    join(parent, id)
  }
  const found = new Set(named)
  for (const id of found) for (const kin of next.get(id) ?? []) found.add(kin)
  return found
}
