// Who answers the admin API, as commands see it: a call goes in, and what became of it comes back as a value.
import type { Method } from '../api/route.ts'
import type { Millis } from '../clock.ts'

export interface Call {
  readonly method: Method
  /** Parts that are data are encoded already, as `pathOf` does. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** As the API has it (RFC 9457). */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly fix: string
}

export type Answer =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: Problem; readonly retryAfter?: Millis }
  | Unreached

/** Nobody answered, or nobody that speaks as Sluice does, or somebody else than was meant. */
export interface Unreached {
  readonly kind: 'unreached'
  readonly why: string
  /** What to do, if it is not to start the server. */
  readonly fix?: string
}

export interface Caller {
  readonly kind: 'server' | 'own' | 'none'
  /** As people are told: an address, or a file. */
  readonly where: string
  call(call: Call): Promise<Answer>
  close(): Promise<void>
}

/** Of a header in seconds; nothing if there is none. */
export function laterBy(retryAfter: string | null | undefined): { readonly retryAfter?: Millis } {
  const seconds = Number(retryAfter ?? Number.NaN)
  return Number.isFinite(seconds) ? { retryAfter: seconds * 1_000 } : {}
}

/** `['v1/lanes', id, 'hold']`: each part as it stands in an address. */
export function pathOf(...parts: readonly string[]): string {
  const [first = '', ...rest] = parts
  return ['', first, ...rest.map(encodeURIComponent)].join('/')
}
