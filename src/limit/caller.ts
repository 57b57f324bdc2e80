// `LimitCaller` is the run or the caller behind a call. An ended run and an aborted caller must not use a slot (M4).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { runContext, type RunContext } from './run-context.ts'

/** `RunLostError` means that the run of the call is no longer live here; another process may already repeat its work. */
export class RunLostError extends SluiceError {
  readonly run: string
  readonly limit: string

  constructor(run: string, limit: string, why: string) {
    super('RUN_LOST', `The run ${run} ${why}; its call under ${limit} was not made.`)
    this.run = run
    this.limit = limit
  }
}

export class LimitCaller {
  /** Aborts when the run's signal or the call's signal aborts. */
  readonly signal: AbortSignal | undefined
  readonly #context: RunContext | undefined
  readonly #limit: string

  constructor(limit: string, callSignal: AbortSignal | undefined) {
    this.#limit = limit
    this.#context = liveRunContext()
    const signals = [this.#context?.signal, callSignal].filter((signal) => signal !== undefined)
    this.signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
  }

  /** The flow of the run; '' outside of runs. */
  get flow(): string {
    return this.#context?.flow ?? ''
  }

  /** Only a live run can be deferred. A call outside a run waits as long as it takes. */
  get mayBeDeferred(): boolean {
    return this.#context?.status() === 'live' && this.#context.mayBeDeferred()
  }

  /** Whether the run has made a call under any limit. */
  get hasCalled(): boolean {
    return this.#context?.hasCalled === true
  }

  /** `markCalled` records that the run has used a slot. */
  markCalled(): void {
    this.#context?.markCalled()
  }

  /** `trackWait` records what the run waits for, so that `explain` can show it. It returns a function that removes the record. */
  trackWait(until: Millis, wake: () => void): () => void {
    return this.#context?.trackWait({ limit: this.#limit, until, wake }) ?? (() => {})
  }

  /** `assertLive` throws if the call must not be made any more. */
  assertLive(): void {
    const context = this.#context
    const status = context?.status()
    if (context !== undefined && status === 'lost')
      throw new RunLostError(context.run, this.#limit, 'has lost its lease')
    if (context !== undefined && status === 'undone') throw new RunLostError(context.run, this.#limit, 'has ended')
    this.signal?.throwIfAborted()
  }
}

/** Code that a run started may call after the run ended, e.g. a client that refreshes its token. That call is outside of any run. */
export function liveRunContext(): RunContext | undefined {
  const context = runContext.getStore()
  const status = context?.status()
  return status === 'done' || status === 'undone' ? undefined : context
}
