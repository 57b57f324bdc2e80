// On whose behalf a call is made: a run that is over, or a caller who gave up, must not use a slot (M4).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { runScope, type RunScope } from '../scope.ts'

/** The run this call belongs to is no longer this process's: somebody else may be doing the same work already. */
export class RunLost extends SluiceError {
  readonly run: string
  readonly limit: string

  constructor(run: string, limit: string, why: string) {
    super('RUN_LOST', `The run ${run} ${why}, so that its call under ${limit} was not made.`)
    this.run = run
    this.limit = limit
  }
}

export class Caller {
  /** The run's own signal and that of the call: either ends it. */
  readonly signal: AbortSignal | undefined
  readonly #scope: RunScope | undefined
  readonly #limit: string

  constructor(limit: string, own: AbortSignal | undefined) {
    this.#limit = limit
    this.#scope = liveScope()
    const signals = [this.#scope?.signal, own].filter((signal) => signal !== undefined)
    this.signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
  }

  /** Nobody else can be: outside a run a call waits as long as it takes. */
  get mayBePutOff(): boolean {
    return this.#scope?.standing() === 'live' && this.#scope.mayBePutOff()
  }

  /** Whether its run has made a call under any limit. */
  get hasCalled(): boolean {
    return this.#scope?.hasCalled === true
  }

  /** It has used a slot. */
  called(): void {
    this.#scope?.called()
  }

  /** What the run waits for, for whoever asks why it takes so long. The answer says that it no longer does. */
  waits(until: Millis, wake: () => void): () => void {
    return this.#scope?.waits({ limit: this.#limit, until, wake }) ?? (() => {})
  }

  /** Throws if the call must not be made any more. */
  check(): void {
    const scope = this.#scope
    const standing = scope?.standing()
    if (scope !== undefined && standing === 'lost') throw new RunLost(scope.run, this.#limit, 'has lost its lease')
    if (scope !== undefined && standing === 'undone') throw new RunLost(scope.run, this.#limit, 'has ended')
    this.signal?.throwIfAborted()
  }
}

/** What was begun in a run, and calls when that has ended (a client that refreshes its token), belongs to no run. */
export function liveScope(): RunScope | undefined {
  const scope = runScope.getStore()
  const standing = scope?.standing()
  return standing === 'done' || standing === 'undone' ? undefined : scope
}
