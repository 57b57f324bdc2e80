// `on`, `key` and `window` run while a sender waits: 50 ms together, no more (L2a). Whoever takes longer is told of once.
import type { Clock, Millis } from '../clock.ts'
import type { AnyListener } from '../observe/events.ts'

const MOST: Millis = 50

export class RoutingTime {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #emit: AnyListener
  readonly #told = new Set<string>()

  constructor(clock: Pick<Clock, 'monotonic'>, emit: AnyListener) {
    this.#clock = clock
    this.#emit = emit
  }

  readonly timed = <T>(flow: string, asked: () => T): T => {
    const began = this.#clock.monotonic()
    try {
      return asked()
    } finally {
      this.#look(flow, this.#clock.monotonic() - began)
    }
  }

  #look(flow: string, took: Millis): void {
    if (took <= MOST || this.#told.has(flow)) return
    this.#told.add(flow)
    const text = `on, key and window of ${flow} took ${Math.round(took)} ms for one event; ${MOST} is the most: they look nothing up.`
    this.#emit('alert.raised', { alert: `slow-routing:${flow}`, text })
  }
}
