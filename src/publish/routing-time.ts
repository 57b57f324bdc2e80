// `RoutingTime` measures `on`, `key` and `window`, which run while a sender waits: at most 50 ms together (L2a). It
// raises one alert for each flow that takes longer.
import type { Clock, Millis } from '../clock.ts'
import type { AnyListener } from '../observe/emitter.ts'

const MAX_TIME: Millis = 50

export class RoutingTime {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #emit: AnyListener
  readonly #alerted = new Set<string>()

  constructor(clock: Pick<Clock, 'monotonic'>, emit: AnyListener) {
    this.#clock = clock
    this.#emit = emit
  }

  readonly measure = <T>(flow: string, call: () => T): T => {
    const began = this.#clock.monotonic()
    try {
      return call()
    } finally {
      this.#check(flow, this.#clock.monotonic() - began)
    }
  }

  #check(flow: string, took: Millis): void {
    if (took <= MAX_TIME || this.#alerted.has(flow)) return
    this.#alerted.add(flow)
    const text = `on, key and window of ${flow} took ${Math.round(took)} ms for one event; at most ${MAX_TIME} ms are allowed. They must not look anything up.`
    this.#emit('alert.raised', { alert: `slow-routing:${flow}`, text })
  }
}
