// How long the other side asks to be left alone: Retry-After, in seconds or as a date (M3).
import type { Millis } from '../clock.ts'

const DAY: Millis = 24 * 3_600_000
/** Too many requests, and not a word about when: long enough to be heard, short enough to be wrong. */
const UNSAID: Millis = 1_000
const SECONDS = /^\d+(?:\.\d+)?$/
/** Dates begin with a weekday. Date.parse alone would take nearly anything for one. */
const WEEKDAY = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i

export const TOO_MANY = 429
const REFUSALS: ReadonlySet<number> = new Set([TOO_MANY, 503, 529])

/** What is read of a response; an SDK's own kind of response has it too. */
export interface Answered {
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

/** How long to pause after a response that refuses and says so, as `fetch` understands it. */
export function refusedFor(response: Answered, now: Millis): Millis | undefined {
  return REFUSALS.has(response.status) ? askedFor(response, now) : undefined
}

/** The same for a response that somebody knows to be a refusal, whatever its status: a 403 of GitHub's, say. */
export function askedFor({ status, headers }: Answered, now: Millis): Millis | undefined {
  const said = spoken(headers.get('retry-after')?.trim() ?? '', headers.get('date') ?? '', now)
  if (said !== undefined) return Math.min(Math.max(0, said), DAY)
  return status === TOO_MANY ? UNSAID : undefined
}

function spoken(text: string, date: string, now: Millis): Millis | undefined {
  if (SECONDS.test(text)) return Math.ceil(Number(text) * 1_000)
  const until = instant(text)
  // By the clock that wrote it, where it says its time: ours may be wrong.
  return until === undefined ? undefined : until - (instant(date) ?? now)
}

function instant(text: string): Millis | undefined {
  if (!WEEKDAY.test(text)) return undefined
  // The oldest of the three forms names no zone and means GMT; it would be read as local time.
  const parsed = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(parsed) ? undefined : parsed
}
