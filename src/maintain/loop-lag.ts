// `LoopLag` measures how late timers fire, i.e. how long a handler blocks the event loop for everything else in the process.
import type { Clock, Millis } from '../clock.ts'
import { quote } from '../observe/explain/format.ts'

const CHECK_EVERY = 500
/** From this lag on, leases are at risk and an alert names the suspects. */
const LAG_ALERT: Millis = 1_000

export class LoopLag {
  readonly #clock: Clock
  readonly #onStall: (ms: Millis) => void
  readonly #onMeasured: (ms: Millis) => void
  #cancel: () => void = () => {}

  /** `onStall` gets each dangerous lag, `onMeasured` every measurement. */
  constructor(clock: Clock, onStall: (ms: Millis) => void, onMeasured: (ms: Millis) => void = () => {}) {
    this.#clock = clock
    this.#onStall = onStall
    this.#onMeasured = onMeasured
  }

  start(): void {
    const expected = this.#clock.monotonic() + CHECK_EVERY
    this.#cancel = this.#clock.after(CHECK_EVERY, () => {
      const lag = this.#clock.monotonic() - expected
      this.#onMeasured(Math.max(0, lag))
      if (lag >= LAG_ALERT) this.#onStall(lag)
      this.start()
    })
  }

  stop(): void {
    this.#cancel()
  }
}

const NAMED_MAX = 10

/** `describeLag` names the runs that were live. A blocked event loop leaves no trace of its cause, so they are only suspects. */
export function describeLag(ms: Millis, runs: readonly { readonly flow: string; readonly key: string }[]): string {
  const blocked = `The event loop was blocked for ${Math.round(ms)} ms.`
  const names = [...new Set(runs.map(({ flow, key }) => `${flow} ${quote(key)}`))]
  if (names.length === 0) return `${blocked} No run was live, so other code of this process blocked it.`
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ''
  return `${blocked} One of the runs that were live then, or other code, blocked it: ${names.slice(0, NAMED_MAX).join(', ')}${more}.`
}
