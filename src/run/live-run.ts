// A run that this process holds: its lease on the monotonic clock, its signal, and why it was aborted.
import type { Millis } from '../clock.ts'
import type { Lease } from '../store/contract/index.ts'
import type { AbortCause } from './verdict.ts'

/** Only the last of these is worth less than those before it. */
const WEIGHT: Readonly<Record<AbortCause, number>> = { lost: 4, purged: 3, timeout: 2, cancel: 1, stop: 0 }

export class LiveRun {
  readonly lease: Lease
  /** When the attempt began, on the monotonic clock. */
  readonly began: Millis
  readonly #abort = new AbortController()
  readonly #over = Promise.withResolvers<'timed-out' | 'lost'>()
  /** On the monotonic clock: from here on the store may have given the lane to somebody else. */
  endsAt: Millis
  cause: AbortCause | undefined
  committed = false
  /** Until when, on the monotonic clock, it waits for a slot of which limit. */
  waits: { readonly limit: string; readonly until: Millis } | undefined

  constructor(lease: Lease, began: Millis, endsAt: Millis) {
    this.lease = lease
    this.began = began
    this.endsAt = endsAt
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Resolves when the handler is no longer waited for. */
  get over(): Promise<'timed-out' | 'lost'> {
    return this.#over.promise
  }

  abort(cause: AbortCause): void {
    if (this.cause === undefined || WEIGHT[cause] > WEIGHT[this.cause]) this.cause = cause
    this.#abort.abort(new DOMException(TEXTS[cause], 'AbortError'))
    if (cause === 'timeout') this.#over.resolve('timed-out')
    if (cause === 'lost') this.#over.resolve('lost')
  }
}

const TEXTS: Readonly<Record<AbortCause, string>> = {
  timeout: 'The run took longer than its timeout.',
  cancel: 'A newer event cancelled the run.',
  stop: 'The process stops.',
  lost: 'The run lost its lease.',
  purged: 'The events of the run were purged.',
}
