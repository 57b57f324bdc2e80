// Counts how often a lane ran again because events arrived during its run: a high count means too short a window.
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { RunFacts } from '../stats/run-facts.ts'

/** How many of the latest lanes this process remembers: at least this many, at most twice as many. */
const MIN_REMEMBERED = 1_000

export class FollowUpRuns {
  readonly #onFollowUp: (flow: string) => void
  #recentlyEnded = new Map<LaneId, Millis>()
  #endedEarlier = new Map<LaneId, Millis>()

  constructor(onFollowUp: (flow: string) => void) {
    this.#onFollowUp = onFollowUp
  }

  recordStart({ lane, flow, tries, lapses, rank, isDeadLetter, events }: RunFacts['lease']): void {
    const ended = this.#recentlyEnded.get(lane) ?? this.#endedEarlier.get(lane)
    if (ended === undefined) return
    this.#recentlyEnded.delete(lane)
    this.#endedEarlier.delete(lane)
    const isNew = tries === 0 && lapses === 0 && rank === 0 && !isDeadLetter
    if (isNew && (events[0]?.arrived ?? Infinity) < ended) this.#onFollowUp(flow)
  }

  recordEnd({ lane }: RunFacts['lease'], now: Millis): void {
    this.#recentlyEnded.set(lane, now)
    if (this.#recentlyEnded.size < MIN_REMEMBERED) return
    this.#endedEarlier = this.#recentlyEnded
    this.#recentlyEnded = new Map()
  }
}
