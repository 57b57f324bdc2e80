// How the POSTs to an endpoint went: figures by the hour for a day, and the last attempts word for word. One document of
// bounded size, made of notes that can be added up in any order. Pure.
import type { Millis } from '../clock.ts'

/** One POST, or that there was none by a fault of ours. */
export interface PostNote {
  readonly run: string
  /** Counted from 1, over all tries of the run. */
  readonly attempt: number
  /** When it was over. */
  readonly at: Millis
  readonly ms: Millis
  /** Undefined: there was no answer. */
  readonly status: number | undefined
  readonly answer: string
  /** Empty: it was delivered. */
  readonly error: string
  /** From when the oldest of its events was made until now. */
  readonly latency: Millis
  /** It is not tried again. */
  readonly isLast: boolean
  /** No fault of the endpoint: it is told and counts nowhere. */
  readonly isOurs?: boolean
}

export type KeptAttempt = Omit<PostNote, 'latency' | 'isLast'>

interface Hour {
  /** Since 1970. */
  readonly hour: number
  readonly delivered: number
  readonly failed: number
  /** Batches that were given up. */
  readonly dead: number
  /** Sums, in milliseconds: of all POSTs, and of the deliveries. */
  readonly ms: Millis
  readonly latency: Millis
}

export interface History {
  readonly lastSuccess: Millis
  /** The oldest first. */
  readonly hours: readonly Hour[]
  readonly attempts: readonly KeptAttempt[]
}

/** Of the last 24 hours. */
export interface DayFigures {
  readonly delivered: number
  readonly failed: number
  readonly dead: number
  readonly ms: Millis
  readonly latency: Millis
}

export const NO_HISTORY: History = { lastSuccess: 0, hours: [], attempts: [] }

const HOUR: Millis = 3_600_000
const HOURS_KEPT = 24
const ATTEMPTS_KEPT = 50
const TEXT_KEPT = 1_000

/** What is shown to people and written again and again: short, and nothing that a terminal would obey. */
export function kept(text: string): string {
  return text.slice(0, TEXT_KEPT).replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ')
}

/** In the order in which they were made. Of very many only the last are read word for word. */
export function noted(history: History, notes: readonly PostNote[]): History {
  const hours = new Map<number, Hour>()
  let lastSuccess = 0
  for (const { at, ms, error, latency, isLast, ...more } of notes) {
    if (more.isOurs === true) continue
    const isGood = error === ''
    const hour = Math.floor(at / HOUR)
    const [delivered, failed, dead] = [isGood ? 1 : 0, isGood ? 0 : 1, isLast && !isGood ? 1 : 0]
    const one = { hour, delivered, failed, dead, ms, latency: isGood ? Math.max(0, latency) : 0 }
    hours.set(hour, added(one, hours.get(hour)))
    if (isGood) lastSuccess = Math.max(lastSuccess, at)
  }
  const attempts = notes.slice(-ATTEMPTS_KEPT).map(({ latency: _latency, isLast: _last, ...attempt }) => {
    return { ...attempt, answer: kept(attempt.answer), error: kept(attempt.error) }
  })
  return merged(history, { lastSuccess, hours: [...hours.values()], attempts })
}

export function merged(one: History, other: History): History {
  const hours = new Map<number, Hour>()
  for (const hour of [...one.hours, ...other.hours]) hours.set(hour.hour, added(hour, hours.get(hour.hour)))
  return {
    lastSuccess: Math.max(one.lastSuccess, other.lastSuccess),
    hours: [...hours.values()].toSorted((a, b) => a.hour - b.hour).slice(-HOURS_KEPT),
    attempts: withoutRepeats([...one.attempts, ...other.attempts].toSorted((a, b) => a.at - b.at)).slice(
      -ATTEMPTS_KEPT,
    ),
  }
}

/** What is our fault comes again every few seconds until it is mended: of a run the last is kept, for it would drive out all others. */
function withoutRepeats(attempts: readonly KeptAttempt[]): readonly KeptAttempt[] {
  const ours = new Map(attempts.filter(isOurs).map((attempt) => [attempt.run, attempt]))
  return ours.size === 0
    ? attempts
    : attempts.filter((attempt) => !isOurs(attempt) || ours.get(attempt.run) === attempt)
}

export function isOurs(attempt: KeptAttempt): boolean {
  return attempt.isOurs === true
}

export function ofTheDay({ hours }: History, now: Millis): DayFigures {
  const since = Math.floor(now / HOUR) - HOURS_KEPT
  return hours.filter(({ hour }) => hour > since).reduce(added, { hour: 0, ...NOTHING })
}

const NOTHING: DayFigures = { delivered: 0, failed: 0, dead: 0, ms: 0, latency: 0 }

function added(one: Hour, other: DayFigures = NOTHING): Hour {
  return {
    hour: one.hour,
    delivered: one.delivered + other.delivered,
    failed: one.failed + other.failed,
    dead: one.dead + other.dead,
    ms: one.ms + other.ms,
    latency: one.latency + other.latency,
  }
}
