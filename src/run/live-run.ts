// A run that this process holds: its lease on the monotonic clock, its signal, and why it was aborted. It is also what the code
// that it calls may know of it.
import type { Clock, Millis } from '../clock.ts'
import type { RunScope, SlotWait, Standing } from '../scope.ts'
import type { Lease } from '../store/contract/index.ts'
import { keptIn, type Kept } from './kept.ts'
import type { AbortCause } from './verdict.ts'

/** Only the last of these is worth less than those before it. */
const WEIGHT: Readonly<Record<AbortCause, number>> = { lost: 4, purged: 3, timeout: 2, cancel: 1, stop: 0 }

export class LiveRun implements RunScope {
  readonly lease: Lease
  readonly #clock: Clock
  /** When the attempt began, on the monotonic clock. */
  readonly began: Millis
  readonly #abort = new AbortController()
  readonly #over = Promise.withResolvers<'timed-out' | 'lost'>()
  /** On the monotonic clock: from here on the store may have given the lane to somebody else. */
  endsAt: Millis
  cause: AbortCause | undefined
  committed = false
  /** It has made a call under a limit. */
  hasCalled = false
  #waits: Set<SlotWait> | undefined
  #ended: 'done' | 'undone' | undefined
  #kept: Kept | undefined

  constructor(lease: Lease, clock: Clock, endsAt: Millis) {
    this.lease = lease
    this.#clock = clock
    this.began = clock.monotonic()
    this.endsAt = endsAt
  }

  get flow(): string {
    return this.lease.flow
  }

  get run(): string {
    return this.lease.run
  }

  /** What it left for itself the last time. */
  get kept(): Kept {
    return (this.#kept ??= keptIn(this.lease.state64))
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Resolves when the handler is no longer waited for. */
  get over(): Promise<'timed-out' | 'lost'> {
    return this.#over.promise
  }

  /** Of the slots it waits for, the one that comes last: before that it cannot go on. */
  get longestWait(): SlotWait | undefined {
    return [...(this.#waits ?? [])].reduce<SlotWait | undefined>(
      (last, wait) => (last === undefined || wait.until > last.until ? wait : last),
      undefined,
    )
  }

  /** The answer ends it. */
  waits(wait: SlotWait): () => void {
    const waits = (this.#waits ??= new Set())
    waits.add(wait)
    return () => void waits.delete(wait)
  }

  called(): void {
    this.hasCalled = true
  }

  standing(): Standing {
    if (this.#ended !== undefined) return this.#ended
    return this.cause === 'lost' || this.isPast ? 'lost' : 'live'
  }

  /** The store may have given the lane to somebody else by now. */
  get isPast(): boolean {
    return this.#clock.monotonic() >= this.endsAt
  }

  /** Once put off in the middle, it waits for its slots from its first call on: else it might make the same calls for ever. */
  mayBePutOff(): boolean {
    return !(this.hasCalled && this.kept.midway === true)
  }

  /** Its handler has returned. What it left waiting looks whether it may go on. */
  end(how: 'done' | 'undone'): void {
    this.#ended = how
    if (how === 'undone') for (const { wake } of this.#waits ?? []) wake()
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
