// How the API answers: JSON, or a problem with a code of the one catalogue (RFC 9457), and nothing that a browser would keep.
import { ERRORS, SluiceError } from '../errors.ts'
import type { SourceAnswer } from '../receive/source.ts'
import { CallLater } from './call-later.ts'
import { MethodWrong } from './method-wrong.ts'

/** Nothing here is to be kept, framed, sniffed or run by a browser. */
export const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

export function json(status: number, value: unknown): SourceAnswer {
  return { status, headers: { 'content-type': 'application/json', ...HEADERS }, body: JSON.stringify(value) }
}

export function problem(error: unknown): SourceAnswer {
  const { code, status, fix, detail } = known(error)
  const later = error instanceof CallLater ? String(Math.max(1, Math.ceil(error.after / 1_000))) : undefined
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      ...HEADERS,
      ...(later !== undefined && { 'retry-after': later }),
      ...(error instanceof MethodWrong && { allow: error.allow }),
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    },
    body: JSON.stringify({ type: `urn:sluice:problem:${code}`, title: titleOf(code), status, detail, code, fix }),
  }
}

export type Known = Pick<SluiceError, 'code' | 'status' | 'fix'> & { readonly detail: string }

/** What is wrong with an option of code is, said over HTTP, wrong with the request. */
export function known(error: unknown): Known {
  const failure =
    error instanceof SluiceError ? error : new SluiceError('API_FAILED', 'The call could not be done.', error)
  const { message, fix } = failure
  // The message of an error begins with its code and ends with its fix.
  const detail = message.slice(failure.code.length + 2, message.length - fix.length).trim()
  const code = failure.code === 'CONFIG_INVALID' ? 'REQUEST_INVALID' : failure.code
  return { code, detail, ...ERRORS[code] }
}

function titleOf(code: keyof typeof ERRORS): string {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
