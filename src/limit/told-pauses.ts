// Whoever hears that a limit is paused wants to hear when it goes on, also when nobody ends the pause (M3).
import type { Clock, Millis } from '../clock.ts'
import type { AnyListener } from '../observe/events.ts'

export interface ToldPausesParts {
  readonly clock: Clock
  readonly emit: AnyListener
}

export class ToldPauses {
  readonly #parts: ToldPausesParts
  /** By limit: how to take back the timer. */
  readonly #timers = new Map<string, () => void>()
  #ended = false

  constructor(parts: ToldPausesParts) {
    this.#parts = parts
  }

  /** `ms`: how long it lasts from now on, as the store says, so that it takes the place of what was told before. */
  paused(limit: string, ms: Millis): void {
    const { clock, emit } = this.#parts
    emit('limit.paused', { limit, ms })
    this.#forget(limit)
    if (this.#ended) return
    this.#timers.set(
      limit,
      clock.after(ms, () => this.resumed(limit)),
    )
  }

  resumed(limit: string): void {
    this.#forget(limit)
    this.#parts.emit('limit.resumed', { limit })
  }

  /** Tells of no end any more. */
  end(): void {
    this.#ended = true
    for (const limit of this.#timers.keys()) this.#forget(limit)
  }

  #forget(limit: string): void {
    this.#timers.get(limit)?.()
    this.#timers.delete(limit)
  }
}
