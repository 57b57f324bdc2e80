// How a handler says what became of its run. Endings are values: only what nobody expected is thrown.
import type { Duration } from '../model/duration.ts'

const ENDING: unique symbol = Symbol('ending')

interface Branded {
  readonly [ENDING]: true
}

export interface FailedEvent {
  readonly id: string
  readonly reason: string
  /** Dead at once, not tried again. */
  readonly permanent?: boolean
}

export type Ending = Branded &
  (
    | { readonly kind: 'done' }
    | { readonly kind: 'again'; readonly after: Duration; readonly state: unknown }
    | { readonly kind: 'retry'; readonly after: Duration; readonly reason: string }
    | { readonly kind: 'drop'; readonly reason: string }
    | { readonly kind: 'partial'; readonly failed: readonly FailedEvent[] }
    | { readonly kind: 'given-back'; readonly after: Duration; readonly why: string }
  )

/** As if nothing had been returned. */
export const done: Ending = { [ENDING]: true, kind: 'done' }

/** To the tail of the line with the same events; no attempt is used. `state` is there as `run.state` the next time. */
export function again(options: { readonly after?: Duration; readonly state?: unknown } = {}): Ending {
  return { [ENDING]: true, kind: 'again', after: options.after ?? 0, state: options.state }
}

/** A failed attempt that knows when the next one makes sense. */
export function retry(options: { readonly after?: Duration; readonly reason?: string } = {}): Ending {
  return {
    [ENDING]: true,
    kind: 'retry',
    after: options.after ?? 0,
    reason: options.reason ?? 'The handler asked for it.',
  }
}

/** Over, and not worth a dead letter. */
export function drop(reason: string): Ending {
  return { [ENDING]: true, kind: 'drop', reason }
}

/** These events were not accepted; all others are done. */
export function partial(options: { readonly failed: readonly FailedEvent[] }): Ending {
  return { [ENDING]: true, kind: 'partial', failed: options.failed }
}

/** Nothing was begun: no try, and unlike `again` for as long as it takes. Only for the engine's own flows. */
export function givenBack(options: { readonly after: Duration; readonly why: string }): Ending {
  return { [ENDING]: true, kind: 'given-back', ...options }
}

export function isEnding(value: unknown): value is Ending {
  return typeof value === 'object' && value !== null && ENDING in value
}

/** Thrown when another attempt cannot help: straight to the dead letters. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError'
}
