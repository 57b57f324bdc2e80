// `PauseEvents` emits `limit.paused`, and `limit.resumed` when a pause is ended or expires (M3).
import type { Clock, Millis } from '../clock.ts'
import type { AnyListener } from '../observe/emitter.ts'

export interface PauseEventsDependencies {
  readonly clock: Clock
  readonly emit: AnyListener
}

export class PauseEvents {
  readonly #deps: PauseEventsDependencies
  /** Cancels the timer of each limit. */
  readonly #timers = new Map<string, () => void>()
  #isStopped = false

  constructor(deps: PauseEventsDependencies) {
    this.#deps = deps
  }

  /** `ms` is the remaining time of the pause according to the store, so it replaces any earlier timer. */
  emitPaused(limit: string, ms: Millis): void {
    const { clock, emit } = this.#deps
    emit('limit.paused', { limit, ms })
    this.#cancelTimer(limit)
    if (this.#isStopped) return
    this.#timers.set(
      limit,
      clock.after(ms, () => this.emitResumed(limit)),
    )
  }

  emitResumed(limit: string): void {
    this.#cancelTimer(limit)
    this.#deps.emit('limit.resumed', { limit })
  }

  /** After `stop`, no pause emits its end any more. */
  stop(): void {
    this.#isStopped = true
    for (const limit of this.#timers.keys()) this.#cancelTimer(limit)
  }

  #cancelTimer(limit: string): void {
    this.#timers.get(limit)?.()
    this.#timers.delete(limit)
  }
}
