// `LingeringHandlers` holds the handlers that still work after their run ended. Their lanes wait in this process until they return.
import type { Millis } from '../clock.ts'
import type { LaneId } from '../model/identity.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { LeasedRun } from '../store/contract/index.ts'

const FIRST_WAIT: Millis = 5_000
const LONGEST_WAIT: Millis = 300_000

export class LingeringHandlers {
  readonly #emit: AnyListener
  readonly #onReturned: (lane: LaneId) => void
  /** How often each lane was deferred because of its handler. */
  readonly #deferrals = new Map<string, number>()

  /** `onReturned` is called when a deferred lane may continue at once. */
  constructor(emit: AnyListener, onReturned: (lane: LaneId) => void) {
    this.#emit = emit
    this.#onReturned = onReturned
  }

  add({ lane, flow, key }: LeasedRun, handler: Promise<unknown>): void {
    this.#deferrals.set(lane, this.#deferrals.get(lane) ?? 0)
    void handler.finally(() => this.#remove({ lane, flow, key }))
  }

  #remove({ lane, flow, key }: Pick<LeasedRun, 'lane' | 'flow' | 'key'>): void {
    const times = this.#deferrals.get(lane) ?? 0
    this.#deferrals.delete(lane)
    if (times > 1) this.#emit('alert.cleared', { alert: toAlertName(flow, key), text: 'The handler has returned.' })
    if (times > 0) this.#onReturned(lane)
  }

  has(lane: string): boolean {
    return this.#deferrals.has(lane)
  }

  /** `deferLane` returns how long to defer the lane. The second time raises an alert: the handler may never return. */
  deferLane({ lane, flow, key }: LeasedRun): Millis {
    const times = this.#deferrals.get(lane) ?? 0
    this.#deferrals.set(lane, times + 1)
    if (times === 1) {
      const text = `A handler of flow ${flow} for key ${JSON.stringify(key)} has not returned, although its run is over. In this process, the lane waits until it returns.`
      this.#emit('alert.raised', { alert: toAlertName(flow, key), text })
    }
    return Math.min(FIRST_WAIT * 2 ** times, LONGEST_WAIT)
  }
}

function toAlertName(flow: string, key: string): string {
  return `hangs:${flow}/${key}`
}
