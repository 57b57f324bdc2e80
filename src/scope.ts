// Which run the code that is being called belongs to: a limit wants to know for whom it waits, and whether it still may.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Millis } from './clock.ts'

export interface RunScope {
  readonly flow: string
  readonly run: string
  /** Aborted when the run is cancelled, out of time, stopped, or has lost its lease. */
  readonly signal: AbortSignal
  /** From now on nothing this run does counts: somebody else may have its lane. */
  readonly lost: () => boolean
  /** Until when, on the monotonic clock, it waits for a slot of which limit. */
  readonly waits: (what: { readonly limit: string; readonly until: Millis } | undefined) => void
}

export const runScope: AsyncLocalStorage<RunScope> = new AsyncLocalStorage()

/** Thrown through a handler by a limit whose slot is too far away: the run is put off, no attempt is used (M6). */
export class PutOff extends Error {
  override readonly name = 'PutOff'
  readonly after: Millis
  readonly limit: string

  constructor(limit: string, after: Millis) {
    super(`The next slot of ${limit} is ${Math.ceil(after)} ms away: the run is put off until then.`)
    this.limit = limit
    this.after = after
  }
}
