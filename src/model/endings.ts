// `Ending` is how a handler reports the end of its run. Endings are values; a handler throws only for unexpected errors.
import type { Duration } from './duration.ts'

const ENDING: unique symbol = Symbol('ending')

interface Branded {
  readonly [ENDING]: true
}

export interface FailedEvent {
  readonly id: string
  readonly reason: string
  /** The event becomes a dead letter at once and is not retried. */
  readonly permanent?: boolean
  /** The event was not tried, so the last attempt of the others does not make it a dead letter. */
  readonly untried?: boolean
}

export type Ending = Branded &
  (
    | { readonly kind: 'done' }
    | { readonly kind: 'snoozed'; readonly after: Duration; readonly state: unknown }
    | { readonly kind: 'retry'; readonly after: Duration; readonly reason: string }
    | { readonly kind: 'drop'; readonly reason: string }
    | { readonly kind: 'partial'; readonly failed: readonly FailedEvent[]; readonly after: Duration }
    | { readonly kind: 'given-back'; readonly after: Duration; readonly why: string; readonly state?: unknown }
  )

/** `done` ends the run, as if the handler had returned nothing. */
export const done: Ending = { [ENDING]: true, kind: 'done' }

/** `snooze` moves the run to the tail of the queue. It uses no attempt. `run.state` holds `state` the next time. */
export function snooze(options: { readonly after?: Duration; readonly state?: unknown } = {}): Ending {
  return { [ENDING]: true, kind: 'snoozed', after: options.after ?? 0, state: options.state }
}

/** `retry` fails the attempt and names the delay before the next one. */
export function retry(options: { readonly after?: Duration; readonly reason?: string } = {}): Ending {
  return {
    [ENDING]: true,
    kind: 'retry',
    after: options.after ?? 0,
    reason: options.reason ?? 'The handler requested it.',
  }
}

/** `drop` ends the run without a dead letter. */
export function drop(reason: string): Ending {
  return { [ENDING]: true, kind: 'drop', reason }
}

/** `partial` names the events that were not accepted. All other events are done. The retry starts no earlier than `after`. */
export function partial(options: { readonly failed: readonly FailedEvent[]; readonly after?: Duration }): Ending {
  return { [ENDING]: true, kind: 'partial', failed: options.failed, after: options.after ?? 0 }
}

/** `defer` is a `snooze` without a time limit, for an attempt that has not begun. Only the engine's own flows use it. */
export function defer(options: {
  readonly after: Duration
  readonly why: string
  /** `run.state` holds it the next time. */
  readonly state?: unknown
}): Ending {
  return { [ENDING]: true, kind: 'given-back', ...options }
}

export function isEnding(value: unknown): value is Ending {
  return typeof value === 'object' && value !== null && ENDING in value
}

/** `PermanentError` moves the run to the dead letters at once, because another attempt cannot help. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError'
}
