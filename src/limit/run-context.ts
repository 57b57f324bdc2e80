// `RunContext` is the run that the current code belongs to. A limit reads it to learn whose call waits and whether it still may.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Millis } from '../clock.ts'

/**
 * `done`: the run has ended and its effects count. `undone`: the run has ended and will be repeated, or never done. `lost`: nothing
 * that the run does counts any more, because another process may have its lane.
 */
export type RunStatus = 'live' | 'done' | 'undone' | 'lost'

export interface SlotWait {
  readonly limit: string
  /** On the monotonic clock. */
  readonly until: Millis
  /** `wake` makes the call check at once whether it may still wait. */
  readonly wake: () => void
}

export interface RunContext {
  readonly flow: string
  readonly run: string
  /** Aborts when the run is cancelled, times out, is stopped, or loses its lease. */
  readonly signal: AbortSignal
  readonly status: () => RunStatus
  /** Whether a slot that is too far away defers the run instead of making it wait (M6). */
  readonly mayBeDeferred: () => boolean
  /** Whether the run has made a call under a limit. */
  readonly hasCalled: boolean
  /** `markCalled` records a used slot: after a later deferral, the run would repeat that call. */
  readonly markCalled: () => void
  /** `trackWait` registers a call that waits for a slot. It returns a function that removes the call. */
  readonly trackWait: (wait: SlotWait) => () => void
}

export const runContext: AsyncLocalStorage<RunContext> = new AsyncLocalStorage()

/** A limit throws `RateLimitDeferred` through the handler if its slot is too far away. The deferral uses no attempt (M6). */
export class RateLimitDeferred extends Error {
  override readonly name = 'RateLimitDeferred'
  readonly after: Millis
  readonly limit: string

  constructor(limit: string, away: Millis, after: Millis) {
    const until = after < away ? `and asks again in ${Math.ceil(after)} ms` : 'until then'
    super(`The next slot of ${limit} is ${Math.ceil(away)} ms away: the run is deferred ${until}.`)
    this.limit = limit
    this.after = after
  }
}
