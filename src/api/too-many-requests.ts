// `TooManyRequestsError` is a 429 that carries the time after which the caller may retry.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'

export class TooManyRequestsError extends SluiceError {
  readonly retryAfter: Millis

  constructor(what: string, after: Millis) {
    super('TOO_MANY_REQUESTS', what)
    this.retryAfter = after
  }
}
