// `ArrivalCache` keeps when the first events of a lane arrived. A list of lanes is polled, and most lanes stay as they are.
import type { Millis } from '../clock.ts'
import type { Lane } from '../model/lane.ts'
import type { Store } from '../store/contract/index.ts'
import { readLaneEvents } from './lane-details.ts'

export interface Arrival {
  readonly at: Millis
  readonly inRun: boolean
}

const ARRIVALS = 16
const MAX_LANES = 500

export class ArrivalCache {
  readonly #lanes = new Map<string, { readonly version: string; readonly arrivals: readonly Arrival[] }>()

  /** `read` returns the arrivals of the first 16 events that run or wait. */
  async read(store: Store, lane: Lane): Promise<readonly Arrival[]> {
    const version = toVersion(lane)
    const known = this.#lanes.get(lane.id)
    if (known?.version === version) return known.arrivals
    const events = await readLaneEvents(store, lane, ARRIVALS)
    const arrivals = events.map(({ at, inRun }) => ({ at, inRun }))
    this.#lanes.delete(lane.id)
    this.#lanes.set(lane.id, { version, arrivals })
    for (const oldest of this.#lanes.keys()) {
      if (this.#lanes.size <= MAX_LANES) break
      this.#lanes.delete(oldest)
    }
    return arrivals
  }
}

/**
 * `toVersion` returns text that changes whenever the events of the lane change. These values suffice, because a position is drawn
 * once, and a claim takes the first events.
 */
function toVersion({ row, tail, waiting, replays, bytes, run }: Lane): string {
  return [row, tail, waiting, replays, bytes, run?.id, run?.events, run?.bytes].join('/')
}
