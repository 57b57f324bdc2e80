// These functions read how long to pause after a response: Retry-After in seconds or as a date (M3).
import type { Millis } from '../clock.ts'

const DAY: Millis = 24 * 3_600_000
/** The pause after a 429 without Retry-After: long enough to help, short enough if it is wrong. */
const DEFAULT_PAUSE: Millis = 1_000
const SECONDS = /^\d+(?:\.\d+)?$/
/** HTTP dates start with a weekday. Date.parse alone accepts nearly any text as a date. */
const WEEKDAY = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i

export const TOO_MANY_REQUESTS = 429
const REFUSALS: ReadonlySet<number> = new Set([TOO_MANY_REQUESTS, 503, 529])

/** `ResponseHead` is the part of a response that is read; the response classes of SDKs have it too. */
export interface ResponseHead {
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

/** `refusalDelay` returns how long to pause after a response whose status is a rejection; undefined for other responses. */
export function refusalDelay(response: ResponseHead, now: Millis): Millis | undefined {
  return REFUSALS.has(response.status) ? retryAfterDelay(response, now) : undefined
}

/** `retryAfterDelay` does the same for a response of any status that the caller knows to be a rejection, e.g. a 403 of GitHub. */
export function retryAfterDelay({ status, headers }: ResponseHead, now: Millis): Millis | undefined {
  const delay = parseRetryAfter(headers.get('retry-after')?.trim() ?? '', headers.get('date') ?? '', now)
  if (delay !== undefined) return Math.min(Math.max(0, delay), DAY)
  return status === TOO_MANY_REQUESTS ? DEFAULT_PAUSE : undefined
}

function parseRetryAfter(text: string, date: string, now: Millis): Millis | undefined {
  if (SECONDS.test(text)) return Math.ceil(Number(text) * 1_000)
  const until = parseHttpDate(text)
  // The Date header is preferred, because the local clock may be wrong.
  return until === undefined ? undefined : until - (parseHttpDate(date) ?? now)
}

function parseHttpDate(text: string): Millis | undefined {
  if (!WEEKDAY.test(text)) return undefined
  // The oldest of the three formats has no zone and means GMT. Date.parse would read it as local time.
  const parsed = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(parsed) ? undefined : parsed
}
