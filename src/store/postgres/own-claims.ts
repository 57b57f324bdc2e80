// What a process remembers of its claims. A lane that is claimed stays where it stands in the index: most runs are over a moment
// later, and an update that no index has to know of costs a third. Who looks for ready lanes passes it by, for it has a live
// lease; once it has been passed often enough, or when its lease is renewed, it is put where it belongs, at the end of its lease.
import type { LaneId } from '../../model/identity.ts'

/** To put it right costs as much as to pass it by so many times. */
const PASSED_MOST = 16

export class OwnClaims {
  /** By the look that found it, the oldest first. */
  readonly #early = new Map<LaneId, number>()
  readonly #long = new Set<string>()
  #looks = 0

  /** Whether the last look at the flow found as many as it asked for. */
  isLong(flow: string): boolean {
    return this.#long.has(flow)
  }

  found(flow: string, isLong: boolean): void {
    if (isLong) this.#long.add(flow)
    else this.#long.delete(flow)
  }

  /** Claimed, and left where it stands. */
  begun(lane: LaneId): void {
    // One that is claimed again stays first otherwise, and hides those behind it.
    this.#early.delete(lane)
    this.#early.set(lane, this.#looks)
  }

  /** It went, or was put where it belongs. */
  moved(lane: LaneId): void {
    this.#early.delete(lane)
  }

  /** Those that have been passed by for long enough: each is told once. */
  looked(): readonly LaneId[] {
    this.#looks++
    const passed: LaneId[] = []
    for (const [lane, look] of this.#early) {
      if (this.#looks - look <= PASSED_MOST) break
      passed.push(lane)
      this.#early.delete(lane)
    }
    return passed
  }
}
