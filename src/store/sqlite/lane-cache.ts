// `LaneCache` keeps lanes in memory, by id and by row. Only this process writes them.
import { ChurnMap } from '../../churn-map.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'

export class LaneCache {
  readonly #lanes = new ChurnMap<LaneId, Lane>()
  readonly #ids = new Map<number, LaneId>()

  get size(): number {
    return this.#lanes.size
  }

  /** `ids` returns the oldest first. */
  ids(): Iterable<LaneId> {
    return this.#lanes.keys()
  }

  has(id: LaneId): boolean {
    return this.#lanes.has(id)
  }

  get(id: LaneId): Lane | undefined {
    return this.#lanes.get(id)
  }

  getByRow(row: number): Lane | undefined {
    const id = this.#ids.get(row)
    return id === undefined ? undefined : this.#lanes.get(id)
  }

  set(lane: Lane): void {
    this.#lanes.set(lane.id, lane)
    this.#ids.set(lane.row, lane.id)
  }

  delete({ id, row }: Lane): boolean {
    this.#ids.delete(row)
    return this.#lanes.delete(id)
  }

  clear(): void {
    this.#lanes.clear()
    this.#ids.clear()
  }
}
