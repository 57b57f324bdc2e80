// Which run the code that is being called belongs to: a limit wants to know for whom it waits, and whether it still may.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Millis } from './clock.ts'

/**
 * `done`: it has ended, and what it did counts. `undone`: it has ended, and will be done again, or never. `lost`: nothing
 * it does counts any more, since somebody else may have its lane.
 */
export type Standing = 'live' | 'done' | 'undone' | 'lost'

/** Of a call that waits for its slot. */
export interface SlotWait {
  readonly limit: string
  /** On the monotonic clock. */
  readonly until: Millis
  /** Has it look at once whether it still may wait. */
  readonly wake: () => void
}

export interface RunScope {
  readonly flow: string
  readonly run: string
  /** Aborted when the run is cancelled, out of time, stopped, or has lost its lease. */
  readonly signal: AbortSignal
  readonly standing: () => Standing
  /** Whether a slot that is too far away puts it off, rather than having it wait (M6). */
  readonly mayBePutOff: () => boolean
  /** It has made a call under a limit. */
  readonly hasCalled: boolean
  /** It has used a slot: put off from now on, it would make that call again. */
  readonly called: () => void
  /** One of its calls waits; the answer says that it no longer does. */
  readonly waits: (wait: SlotWait) => () => void
}

export const runScope: AsyncLocalStorage<RunScope> = new AsyncLocalStorage()

/** Thrown through a handler by a limit whose slot is too far away: the run is put off, no attempt is used (M6). */
export class PutOff extends Error {
  override readonly name = 'PutOff'
  readonly after: Millis
  readonly limit: string

  constructor(limit: string, away: Millis, after: Millis) {
    const until = after < away ? `and asks again in ${Math.ceil(after)} ms` : 'until then'
    super(`The next slot of ${limit} is ${Math.ceil(away)} ms away: the run is put off ${until}.`)
    this.limit = limit
    this.after = after
  }
}
