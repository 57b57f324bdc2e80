// On whose behalf a call is made: a run that is over, or a caller who gave up, must not use a slot (M4).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { runScope, type RunScope } from '../scope.ts'

/** The run this call belongs to lost its lease: somebody else may be doing the same work already. */
export class RunLost extends SluiceError {
  readonly run: string
  readonly limit: string

  constructor(run: string, limit: string) {
    super('RUN_LOST', `The run ${run} has lost its lease, so that its call under ${limit} was not made.`)
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
    this.#scope = runScope.getStore()
    const signals = [this.#scope?.signal, own].filter((signal) => signal !== undefined)
    this.signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
  }

  get inRun(): boolean {
    return this.#scope !== undefined
  }

  /** What the run waits for, for whoever asks why it takes so long; undefined: no longer. */
  waits(until: Millis | undefined): void {
    this.#scope?.waits(until === undefined ? undefined : { limit: this.#limit, until })
  }

  /** Throws if the call must not be made any more. */
  check(): void {
    if (this.#scope?.lost() === true) throw new RunLost(this.#scope.run, this.#limit)
    this.signal?.throwIfAborted()
  }
}
