// What a process believes of the store without asking: the lanes it last saw, the epoch of the routes, the server's time. An
// arrival that is decided on it needs one flight instead of two, and is refused by the server where it is not so.
import { BusyMap } from '../../busy-map.ts'
import { systemClock, type Clock, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Standing } from './standings.ts'
import { Reserve } from './numbers.ts'

/** Of either generation: lanes that were neither seen nor written since the one before last are forgotten. */
const GENERATION = 10_000
/** Longer keys are not kept in memory. */
const KEY_MOST = 256
/** A sample of the server's clock counts for one to two of these. */
const SAMPLED_FOR: Millis = 5_000
/** After a wrong guess so many arrivals are not guessed about, twice as many after each further one. */
const CAUTION_MOST = 64

export class Beliefs {
  reserve: Reserve = new Reserve()
  /** Undefined before the first transaction. */
  routes: number | undefined
  readonly #clock: Clock | undefined
  #lanes = new BusyMap<LaneId, Standing>()
  #before = new BusyMap<LaneId, Standing>()
  #offsets: readonly [now: number, before: number] = [-Infinity, -Infinity]
  #sampledAt: Millis = -Infinity
  #caution = 0
  #pass = 0

  /** `clock`: the time of tests, which needs no guess. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock
  }

  /** Whether it is worth while. */
  get areTrusted(): boolean {
    if (this.#pass === 0) return this.routes !== undefined
    this.#pass--
    return false
  }

  wereRight(): void {
    this.#caution = 0
  }

  wereWrong(): void {
    this.#caution = Math.min(Math.max(1, 2 * this.#caution), CAUTION_MOST)
    this.#pass = this.#caution
  }

  lane(id: LaneId): Standing | undefined {
    return this.#lanes.get(id) ?? this.#before.get(id)
  }

  learn(standing: Standing): void {
    const { id, key } = standing.lane
    if (key.length > KEY_MOST) return this.forget(id)
    this.#lanes.set(id, standing)
    if (this.#lanes.size < GENERATION) return
    this.#before = this.#lanes
    this.#lanes = new BusyMap()
  }

  forget(id: LaneId): void {
    this.#lanes.delete(id)
    this.#before.delete(id)
  }

  /** A server that was lost may come back, or another in its place, without numbers that it has given: it gives them again. */
  wereOfAnother(): void {
    this.reserve = new Reserve()
    this.#lanes = new BusyMap()
    this.#before = new BusyMap()
  }

  /** The server said what time it is, just now. */
  happened(now: Millis): void {
    const at = systemClock.monotonic()
    const offset = now - at
    if (at - this.#sampledAt >= SAMPLED_FOR) {
      this.#offsets = [offset, at - this.#sampledAt >= 2 * SAMPLED_FOR ? -Infinity : this.#offsets[0]]
      this.#sampledAt = at
    } else this.#offsets = [Math.max(this.#offsets[0], offset), this.#offsets[1]]
  }

  /** By the server's clock: not ahead of it, and behind it by no more than its quickest answer took. */
  get now(): Millis | undefined {
    if (this.#clock !== undefined) return this.#clock.now()
    const at = systemClock.monotonic()
    if (at - this.#sampledAt >= 2 * SAMPLED_FOR) return undefined
    return Math.floor(at + Math.max(...this.#offsets))
  }
}
