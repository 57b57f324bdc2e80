// `DeferredIndexMoves` remembers which claimed lanes this process has left at their old index position. Most runs end a moment
// later, and an update that touches no index costs a third less. Claims skip such a lane because it has a live lease. After
// `MAX_PASSES` skips, or when its lease is renewed, the lane moves to the position of its lease end.
import type { LaneId } from '../../model/identity.ts'

/** Moving a lane in the index costs as much as skipping it this many times. */
const MAX_PASSES = 16

export class DeferredIndexMoves {
  /** Each lane maps to the scan that found it; the oldest scan comes first. */
  readonly #deferred = new Map<LaneId, number>()
  readonly #fullFlows = new Set<string>()
  #scans = 0

  /** `hasMoreReady` returns whether the last scan of the flow found as many lanes as it asked for. */
  hasMoreReady(flow: string): boolean {
    return this.#fullFlows.has(flow)
  }

  recordScan(flow: string, isFull: boolean): void {
    if (isFull) this.#fullFlows.add(flow)
    else this.#fullFlows.delete(flow)
  }

  /** `defer` records a claimed lane that keeps its index position. */
  defer(lane: LaneId): void {
    // Without the delete, a lane that is claimed again would stay first in the map and hide the lanes behind it.
    this.#deferred.delete(lane)
    this.#deferred.set(lane, this.#scans)
  }

  /** `remove` forgets a lane that was deleted or moved to its correct position. */
  remove(lane: LaneId): void {
    this.#deferred.delete(lane)
  }

  /** `takeOverdue` returns the lanes that scans have skipped more than `MAX_PASSES` times, and forgets them. */
  takeOverdue(): readonly LaneId[] {
    this.#scans++
    const overdue: LaneId[] = []
    for (const [lane, scan] of this.#deferred) {
      if (this.#scans - scan <= MAX_PASSES) break
      overdue.push(lane)
      this.#deferred.delete(lane)
    }
    return overdue
  }
}
