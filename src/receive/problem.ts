// A `Problem` is the response to bad input, for programs and people: RFC 9457, with a stable code and a fix (R5).
import type { Millis } from '../clock.ts'
import type { Autopsy } from './autopsy.ts'
import type { SourceResponse } from './source.ts'

/** All faults, including those found before or after the source checks the request. */
const STATUSES = {
  SIGNATURE_MISSING: 401,
  SIGNATURE_WRONG: 401,
  TIMESTAMP_MISSING: 401,
  TIMESTAMP_OLD: 401,
  TIMESTAMP_IN_FUTURE: 401,
  CREDENTIALS_MISSING: 401,
  CREDENTIALS_WRONG: 401,
  ADDRESS_NOT_ALLOWED: 403,
  HANDSHAKE_REFUSED: 403,
  SOURCE_PENDING: 403,
  CONTENT_TYPE_WRONG: 415,
  BODY_NOT_UNDERSTOOD: 400,
  METHOD_NOT_ALLOWED: 405,
  SOURCE_UNKNOWN: 404,
  BODY_TOO_LARGE: 413,
  TOO_MANY_EVENTS: 413,
  BODY_CUT_OFF: 400,
  ENCODING_NOT_ALLOWED: 415,
  ENCODING_BROKEN: 400,
  TOO_MANY_REQUESTS: 429,
  BUSY: 503,
  STORE_FAILED: 503,
  EVENT_INVALID: 400,
  APP_STOPPED: 503,
  REQUEST_BROKEN: 400,
  PATH_AMBIGUOUS: 400,
  REQUEST_TOO_SLOW: 408,
  HEADERS_TOO_LARGE: 431,
  ROUTE_FAILED: 500,
} as const

export type ProblemCode = keyof typeof STATUSES

export const STATUS: Readonly<Record<ProblemCode, number>> = STATUSES

export interface Problem {
  readonly code: ProblemCode
  readonly what: string
  readonly fix: string
  /** After how long a retry makes sense. */
  readonly retryAfter?: Millis
  readonly headers?: Readonly<Record<string, string>>
  /** The request contains a secret: nothing of the body is kept. */
  readonly containsSecret?: boolean
  /** What the verification read, if it refused the request. */
  readonly autopsy?: Autopsy
}

/** `toProblemResponse` leaves out the fix, which is for the owner of the source and is kept with the refused
    request. The sender, a stranger, gets the code and the reason. */
export function toProblemResponse({ code, what, retryAfter, headers }: Problem): SourceResponse {
  const status = STATUS[code]
  const later = retryAfter === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(retryAfter / 1_000))) }
  return {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers, ...later },
    body: JSON.stringify({ type: `urn:sluice:problem:${code}`, title: toTitle(code), status, detail: what, code }),
  }
}

function toTitle(code: ProblemCode): string {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
