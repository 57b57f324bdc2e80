// How late timers are: what a handler that keeps the event loop busy does to everybody else in its process.
import type { Clock, Millis } from '../clock.ts'
import { quoted } from '../observe/explain-words.ts'

const LOOK_EVERY = 500
/** From here on leases are in danger, and somebody should be named. */
const LAG_TOLD: Millis = 1_000

export class LoopLag {
  readonly #clock: Clock
  readonly #told: (ms: Millis) => void
  readonly #measured: (ms: Millis) => void
  #cancel: () => void = () => {}

  /** `told`: of what is dangerous; `measured`: of every look. */
  constructor(clock: Clock, told: (ms: Millis) => void, measured: (ms: Millis) => void = () => {}) {
    this.#clock = clock
    this.#told = told
    this.#measured = measured
  }

  start(): void {
    const expected = this.#clock.monotonic() + LOOK_EVERY
    this.#cancel = this.#clock.after(LOOK_EVERY, () => {
      const lag = this.#clock.monotonic() - expected
      this.#measured(Math.max(0, lag))
      if (lag >= LAG_TOLD) this.#told(lag)
      this.start()
    })
  }

  stop(): void {
    this.#cancel()
  }
}

const NAMED_MAX = 10

/** A stall leaves no trace of who made it: what ran is all that is known, and it is no more than a suspicion. */
export function lagText(ms: Millis, runs: readonly { readonly flow: string; readonly key: string }[]): string {
  const stood = `The event loop stood still for ${Math.round(ms)} ms.`
  const names = [...new Set(runs.map(({ flow, key }) => `${flow} ${quoted(key)}`))]
  if (names.length === 0) return `${stood} No run was on: other code of this process stood in the way.`
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ''
  return `${stood} Running then, one of them or other code stood in the way: ${names.slice(0, NAMED_MAX).join(', ')}${more}.`
}
