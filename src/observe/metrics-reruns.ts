// How often a lane had to run again since events came while it ran: the measure of a window that is too short.
import type { Millis } from '../clock.ts'
import type { LaneId } from '../model/identity.ts'
import type { RunFacts } from './tallies-facts.ts'

/** Lanes that ran last in this process: at least so many, at most twice as many. */
const REMEMBERED = 1_000

export class Reruns {
  readonly #now: () => Millis
  readonly #told: (flow: string) => void
  #ended = new Map<LaneId, Millis>()
  #endedBefore = new Map<LaneId, Millis>()

  constructor(now: () => Millis, told: (flow: string) => void) {
    this.#now = now
    this.#told = told
  }

  began({ lane, flow, tries, lapses, rank, letter, events }: RunFacts['lease']): void {
    const ended = this.#ended.get(lane) ?? this.#endedBefore.get(lane)
    if (ended === undefined) return
    this.#ended.delete(lane)
    this.#endedBefore.delete(lane)
    const isNew = tries === 0 && lapses === 0 && rank === 0 && !letter
    if (isNew && (events[0]?.arrived ?? Infinity) < ended) this.#told(flow)
  }

  ended({ lane }: RunFacts['lease']): void {
    this.#ended.set(lane, this.#now())
    if (this.#ended.size < REMEMBERED) return
    this.#endedBefore = this.#ended
    this.#ended = new Map()
  }
}
