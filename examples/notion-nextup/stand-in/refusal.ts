// How Notion says no: a status, a code and a message, the same for everything that can be wrong.

export class Refusal extends Error {
  readonly status: number
  readonly code: string
  /** Seconds. */
  readonly retryAfter: number | undefined

  constructor(status: number, code: string, message: string, retryAfter?: number) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfter = retryAfter
  }
}

export function invalid(message: string): Refusal {
  return new Refusal(400, 'validation_error', message)
}

export function notFound(what: string): Refusal {
  const message = `Could not find ${what}. Make sure it is shared with your integration.`
  return new Refusal(404, 'object_not_found', message)
}

/** The rejection that a test requests, by status. */
export const REFUSALS: Readonly<Record<number, string>> = {
  400: 'validation_error',
  401: 'unauthorized',
  403: 'restricted_resource',
  404: 'object_not_found',
  409: 'conflict_error',
  429: 'rate_limited',
  500: 'internal_server_error',
  503: 'service_unavailable',
  504: 'gateway_timeout',
  529: 'service_overload',
}
