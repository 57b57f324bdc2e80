// `ApiClient` is how commands call the admin API: a call goes in, and its outcome comes back as a value.
import type { Method } from '../api/route.ts'
import type { Millis } from '../clock.ts'

export interface ApiCall {
  readonly method: Method
  /** Variable segments are already encoded, e.g. by `toPath`. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The body as JSON text, instead of `body`. */
  readonly text?: string
}

/** A problem as the API sends it (RFC 9457). */
export interface ApiProblem {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly fix: string
}

export type ApiResult =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: ApiProblem; readonly retryAfter?: Millis }
  | UnreachableApi

/** `FailedResult` is a call without a result. */
export type FailedResult = Exclude<ApiResult, { readonly kind: 'done' }>

/** Nothing responded, or something that is not Sluice, or a server other than the intended one. */
export interface UnreachableApi {
  readonly kind: 'unreached'
  readonly why: string
  /** The fix, if it is not to start the server. */
  readonly fix?: string
}

export interface ApiClient {
  readonly kind: 'server' | 'own' | 'none'
  /** The address or file, as shown to people. */
  readonly location: string
  call(call: ApiCall): Promise<ApiResult>
  close(): Promise<void>
}

/** `parseRetryAfter` reads the header in seconds. It returns nothing if the header is missing. */
export function parseRetryAfter(retryAfter: string | null | undefined): { readonly retryAfter?: Millis } {
  const seconds = Number(retryAfter ?? Number.NaN)
  return Number.isFinite(seconds) ? { retryAfter: seconds * 1_000 } : {}
}

/** `toPath` encodes each part: `['v1/lanes', id, 'hold']`. */
export function toPath(...parts: readonly string[]): string {
  const [first = '', ...rest] = parts
  return ['', first, ...rest.map(encodeURIComponent)].join('/')
}
