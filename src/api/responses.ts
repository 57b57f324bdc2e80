// Builds API responses: JSON, or a problem (RFC 9457) with a code from `errors.ts`, with headers that forbid caching.
import type { Millis } from '../clock.ts'
import { ERRORS, SluiceError } from '../errors.ts'
import type { SourceResponse } from '../receive/source.ts'

/** Forbids browsers to cache, frame, sniff or execute a response. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

export function jsonResponse(status: number, value: unknown): SourceResponse {
  return { status, headers: { 'content-type': 'application/json', ...SECURITY_HEADERS }, body: JSON.stringify(value) }
}

export function problemResponse(error: unknown): SourceResponse {
  const { code, status, fix, detail } = toApiFailure(error)
  const retryAfterSeconds =
    error instanceof TooManyRequestsError ? String(Math.max(1, Math.ceil(error.retryAfter / 1_000))) : undefined
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      ...SECURITY_HEADERS,
      ...(retryAfterSeconds !== undefined && { 'retry-after': retryAfterSeconds }),
      ...(error instanceof MethodNotAllowedError && { allow: error.allow }),
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    },
    body: JSON.stringify({ type: `urn:sluice:problem:${code}`, title: toTitle(code), status, detail, code, fix }),
  }
}

export type ApiFailure = Pick<SluiceError, 'code' | 'status' | 'fix'> & { readonly detail: string }

/** `toApiFailure` reports CONFIG_INVALID as REQUEST_INVALID: over HTTP, the wrong option came with the request. */
export function toApiFailure(error: unknown): ApiFailure {
  const failure =
    error instanceof SluiceError ? error : new SluiceError('API_FAILED', 'The call failed inside the server.', error)
  const { message, fix } = failure
  // The message of an error begins with its code and ends with its fix.
  const detail = message.slice(failure.code.length + 2, message.length - fix.length).trim()
  if (failure.code === 'CONFIG_INVALID') return { code: 'REQUEST_INVALID', detail, ...ERRORS.REQUEST_INVALID }
  return { code: failure.code, detail, status: failure.status, fix }
}

function toTitle(code: keyof typeof ERRORS): string {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** `MethodNotAllowedError` is a 405 that carries the methods which the path does take. */
export class MethodNotAllowedError extends SluiceError {
  /** The value of the `allow` header. */
  readonly allow: string

  constructor(methods: readonly string[]) {
    const allow = methods.join(', ')
    super('METHOD_NOT_ALLOWED', `This path supports only ${allow}.`)
    this.allow = allow
  }
}

/** `TooManyRequestsError` is a 429 that carries the time after which the caller may retry. */
export class TooManyRequestsError extends SluiceError {
  readonly retryAfter: Millis

  constructor(what: string, after: Millis) {
    super('TOO_MANY_REQUESTS', what)
    this.retryAfter = after
  }
}
