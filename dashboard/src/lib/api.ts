// The client of the admin API. Addresses are relative to the mount, and the cookie of the sign-in goes along.
import type { Problem } from './types.ts'

/** `ApiError` is an answer that is not a success, or the lack of one (`status` 0). */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly fix: string
  readonly retryAfter: number | undefined

  constructor(status: number, problem: Problem, retryAfter?: number) {
    super(problem.detail ?? problem.title ?? `HTTP ${status}`)
    this.status = status
    this.code = problem.code ?? (status === 0 ? 'NO_ANSWER' : `HTTP ${status}`)
    this.fix = problem.fix ?? ''
    this.retryAfter = retryAfter
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

/** `address` returns the address of an API path with its query; undefined and empty values are left out. */
export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return `v1/${path}${text === '' ? '' : `?${text}`}`
}

type OnSignedOut = (error: ApiError) => void
let onSignedOut: OnSignedOut = () => {}

/** `whenSignedOut` sets the function to call when a response says that the session has ended. */
export function whenSignedOut(listener: OnSignedOut): void {
  onSignedOut = listener
}

export function get<T>(target: string, signal?: AbortSignal): Promise<T> {
  return call<T>('GET', target, undefined, signal)
}

export function post<T>(path: string, body: unknown = {}): Promise<T> {
  return call<T>('POST', `v1/${path}`, body)
}

export function patch<T>(path: string, body: unknown): Promise<T> {
  return call<T>('PATCH', `v1/${path}`, body)
}

export function remove<T>(path: string, body: unknown = {}): Promise<T> {
  return call<T>('DELETE', `v1/${path}`, body)
}

async function call<T>(method: string, target: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, credentials: 'same-origin', headers: { accept: 'application/json' } }
  if (signal !== undefined) init.signal = signal
  if (body !== undefined) {
    init.body = JSON.stringify(body)
    init.headers = { accept: 'application/json', 'content-type': 'application/json' }
  }
  let response: Response
  try {
    response = await fetch(new URL(target, document.baseURI), init)
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new ApiError(0, {
      detail: 'The server does not answer.',
      fix: 'Check that the process runs and that this machine can reach it.',
    })
  }
  if (response.ok) return (await response.json()) as T
  const error = await errorOf(response)
  if (response.status === 401 && !target.startsWith('v1/session')) onSignedOut(error)
  throw error
}

async function errorOf(response: Response): Promise<ApiError> {
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  let problem: Problem = {}
  try {
    problem = (await response.json()) as Problem
  } catch {
    // A proxy answered with its own page; the status says what there is to say.
  }
  return new ApiError(response.status, problem, Number.isNaN(retryAfter) ? undefined : retryAfter)
}

/** `segment` makes an id or a name safe as one segment of a path. */
export function segment(id: string): string {
  return encodeURIComponent(id)
}
