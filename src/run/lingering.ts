// Handlers that had not returned when their run was over: none of their lanes starts again here before they have.
import type { Millis } from '../clock.ts'
import type { LaneId } from '../model/identity.ts'
import type { AnyListener } from '../observe/events.ts'
import type { Lease } from '../store/contract/index.ts'

const FIRST_WAIT: Millis = 5_000
const LONGEST_WAIT: Millis = 300_000

export class Lingering {
  readonly #emit: AnyListener
  readonly #returned: (lane: LaneId) => void
  /** How often each lane was put off because of it. */
  readonly #lanes = new Map<string, number>()

  /** `returned`: the lane was put off, and may go on at once. */
  constructor(emit: AnyListener, returned: (lane: LaneId) => void) {
    this.#emit = emit
    this.#returned = returned
  }

  add({ lane, flow, key }: Lease, handler: Promise<unknown>): void {
    this.#lanes.set(lane, this.#lanes.get(lane) ?? 0)
    void handler.finally(() => this.#remove({ lane, flow, key }))
  }

  #remove({ lane, flow, key }: Pick<Lease, 'lane' | 'flow' | 'key'>): void {
    const times = this.#lanes.get(lane) ?? 0
    this.#lanes.delete(lane)
    if (times > 1) this.#emit('alert.cleared', { alert: nameOf(flow, key), text: 'The handler has returned.' })
    if (times > 0) this.#returned(lane)
  }

  has(lane: string): boolean {
    return this.#lanes.has(lane)
  }

  /** How long the lane is put off: others may have it meanwhile. If it goes on somebody has to know: it may be for ever. */
  putOff({ lane, flow, key }: Lease): Millis {
    const times = this.#lanes.get(lane) ?? 0
    this.#lanes.set(lane, times + 1)
    if (times === 1) {
      const text = `A handler of flow ${flow} for key ${JSON.stringify(key)} has not returned, though its run is over; the lane waits for that in this process.`
      this.#emit('alert.raised', { alert: nameOf(flow, key), text })
    }
    return Math.min(FIRST_WAIT * 2 ** times, LONGEST_WAIT)
  }
}

function nameOf(flow: string, key: string): string {
  return `hangs:${flow}/${key}`
}
