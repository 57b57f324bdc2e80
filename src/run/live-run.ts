// `LiveRun` is a run whose lease this process holds: its expiry on the monotonic clock, its signal, and why it was aborted. It is also
// the `RunContext` of the code that its handler calls.
import { NEVER, type Clock, type Millis } from '../clock.ts'
import type { RunContext, SlotWait, RunStatus } from '../limit/run-context.ts'
import type { LeasedRun } from '../store/contract/index.ts'

/** `AbortCause` is why a run's signal aborted. */
export type AbortCause = 'timeout' | 'cancel' | 'stop' | 'lost' | 'purged'

/** `unanswered` means that the store has not answered the commit, or that the call failed. */
export type CommitState = 'not-called' | 'unanswered' | 'ok' | 'cancelled'

/** A cause replaces one of lower weight. */
const CAUSE_WEIGHTS: Readonly<Record<AbortCause, number>> = { lost: 4, purged: 3, timeout: 2, cancel: 1, stop: 0 }

export class LiveRun implements RunContext {
  readonly lease: LeasedRun
  readonly #clock: Clock
  /** When the attempt began, on the monotonic clock. */
  readonly startedAt: Millis
  /** Created on first use, because few handlers look at their signal. */
  #controller: AbortController | undefined
  /** Called when the attempt must not wait for its handler any longer. */
  onOver: (how: 'timed-out' | 'lost') => void = () => {}
  /** On the monotonic clock: after this, the store may give the lane to another process. */
  endsAt: Millis
  abortCause: AbortCause | undefined
  /** The result of the `commit()` calls (L6c). */
  commit: CommitState = 'not-called'
  /** Whether the run has made a call under a limit. */
  hasCalled = false
  #slotWaits: Set<SlotWait> | undefined
  #endedAs: 'done' | 'undone' | undefined
  #storedState: StoredRunState | undefined

  constructor(lease: LeasedRun, clock: Clock, endsAt: Millis) {
    this.lease = lease
    this.#clock = clock
    this.startedAt = clock.monotonic()
    this.endsAt = endsAt
  }

  get flow(): string {
    return this.lease.flow
  }

  get run(): string {
    return this.lease.runId
  }

  /** The state that the previous attempt stored. */
  get storedState(): StoredRunState {
    return (this.#storedState ??= parseRunState(this.lease.stateBase64))
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.abortCause !== undefined) this.#controller.abort(toAbortReason(this.abortCause))
    }
    return this.#controller.signal
  }

  /** `sleep` resolves after the time on the app's clock. It rejects with the reason of the signal once that aborts. */
  sleep(ms: Millis): Promise<void> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason as Error)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = (): void => {
      cancel()
      reject(this.signal.reason as Error)
    }
    this.signal.addEventListener('abort', onAbort, { once: true })
    const cancel = this.#clock.after(Math.min(ms, NEVER), () => {
      this.signal.removeEventListener('abort', onAbort)
      resolve()
    })
    return promise
  }

  /** The last slot the run waits for: the run cannot continue before it. */
  get longestWait(): SlotWait | undefined {
    return [...(this.#slotWaits ?? [])].reduce<SlotWait | undefined>(
      (last, wait) => (last === undefined || wait.until > last.until ? wait : last),
      undefined,
    )
  }

  /** `trackWait` registers a call that waits for a slot. It returns a function that removes the call. */
  trackWait(wait: SlotWait): () => void {
    const waits = (this.#slotWaits ??= new Set())
    waits.add(wait)
    return () => void waits.delete(wait)
  }

  markCalled(): void {
    this.hasCalled = true
  }

  status(): RunStatus {
    if (this.#endedAs !== undefined) return this.#endedAs
    return this.abortCause === 'lost' || this.isLapsed ? 'lost' : 'live'
  }

  /** Whether the store may have given the lane to another process by now. */
  get isLapsed(): boolean {
    return this.#clock.monotonic() >= this.endsAt
  }

  /** A run that was deferred after a call waits for all later slots; otherwise it might repeat the same calls for ever. */
  mayBeDeferred(): boolean {
    return !(this.hasCalled && this.storedState.midway === true)
  }

  /** `markEnded` records that the handler returned. Its waiting calls check whether they may continue. */
  markEnded(how: 'done' | 'undone'): void {
    this.#endedAs = how
    if (how === 'undone') for (const { wake } of this.#slotWaits ?? []) wake()
  }

  abort(cause: AbortCause): void {
    if (this.abortCause === undefined || CAUSE_WEIGHTS[cause] > CAUSE_WEIGHTS[this.abortCause]) this.abortCause = cause
    this.#controller?.abort(toAbortReason(cause))
    if (cause === 'timeout') this.onOver('timed-out')
    if (cause === 'lost') this.onOver('lost')
  }
}

function toAbortReason(cause: AbortCause): DOMException {
  return new DOMException(ABORT_TEXTS[cause], 'AbortError')
}

const ABORT_TEXTS: Readonly<Record<AbortCause, string>> = {
  timeout: 'The run took longer than its timeout.',
  cancel: 'A newer event cancelled the run.',
  stop: 'The process stops.',
  lost: 'The run lost its lease.',
  purged: 'The events of the run were purged.',
}

/** `StoredRunState` is what the store keeps with a run between attempts: the handler's state and how many events it has published. */
export interface StoredRunState {
  readonly published: number
  readonly state: unknown
  /** The limit whose slot was too far away. Only `explain` reads it. */
  readonly deferredBy?: string
  /** Whether the run was deferred after it had made calls. It must not repeat them for ever without progress (M6). */
  readonly midway?: boolean
}

const STATE_BYTES_MAX = 262_144
const NO_STATE: StoredRunState = Object.freeze({ published: 0, state: undefined })

function parseRunState(state64: string): StoredRunState {
  if (state64 === '') return NO_STATE
  return JSON.parse(Buffer.from(state64, 'base64').toString()) as StoredRunState
}

export function serializeRunState({ published, state, ...ours }: StoredRunState): string {
  const text = JSON.stringify({ published, state })
  if (text.length > STATE_BYTES_MAX)
    throw new RangeError(`snooze.state must have at most ${STATE_BYTES_MAX} characters as JSON; got ${text.length}.`)
  return Buffer.from(JSON.stringify({ published, state, ...ours })).toString('base64')
}

/** `clearDeferral` removes the deferral of a run that has started again. */
export function clearDeferral(state64: string): string {
  const { deferredBy, ...kept } = parseRunState(state64)
  return deferredBy === undefined ? state64 : serializeRunState(kept)
}
