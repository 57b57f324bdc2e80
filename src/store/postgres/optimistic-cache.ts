// `OptimisticCache` holds what this process last saw: lanes, the routes epoch and the server's time. An append that is decided
// on this cache needs one round trip instead of two. The server rejects the append if the cache was stale.
import { ChurnMap } from '../../churn-map.ts'
import { systemClock, type Clock, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { IndexPosition } from './index-position.ts'
import { CounterReserve } from './counter.ts'

/**
 * The size of each of the two generations. The cache forgets lanes that were neither seen nor written since the generation
 * before last.
 */
const GENERATION_SIZE = 10_000
/** Lanes with longer keys are not cached. */
const MAX_KEY_LENGTH = 256
/** The server's clock is sampled at this interval; a sample is used for one to two intervals. */
const CLOCK_SAMPLE_LIFETIME: Millis = 5_000
/** After a rejected append, this many appends at most skip the cache; the number doubles with each further rejection. */
const MAX_BACKOFF = 64

export class OptimisticCache {
  reserve: CounterReserve = new CounterReserve()
  /** The routes epoch; undefined before the first transaction. */
  routes: number | undefined
  readonly #clock: Clock | undefined
  #lanes = new ChurnMap<LaneId, IndexPosition>()
  #previousLanes = new ChurnMap<LaneId, IndexPosition>()
  #offsets: readonly [now: number, before: number] = [-Infinity, -Infinity]
  #sampledAt: Millis = -Infinity
  #backoff = 0
  #skipsLeft = 0

  /** `clock` replaces the server's clock in tests and needs no estimate. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock
  }

  /** `isUsable` returns whether the next append should use the cache. Reading it counts down the appends to skip. */
  get isUsable(): boolean {
    if (this.#skipsLeft === 0) return this.routes !== undefined
    this.#skipsLeft--
    return false
  }

  recordHit(): void {
    this.#backoff = 0
  }

  recordMiss(): void {
    this.#backoff = Math.min(Math.max(1, 2 * this.#backoff), MAX_BACKOFF)
    this.#skipsLeft = this.#backoff
  }

  getLane(id: LaneId): IndexPosition | undefined {
    return this.#lanes.get(id) ?? this.#previousLanes.get(id)
  }

  setLane(position: IndexPosition): void {
    const { id, key } = position.lane
    if (key.length > MAX_KEY_LENGTH) return this.removeLane(id)
    this.#lanes.set(id, position)
    if (this.#lanes.size < GENERATION_SIZE) return
    this.#previousLanes = this.#lanes
    this.#lanes = new ChurnMap()
  }

  removeLane(id: LaneId): void {
    this.#lanes.delete(id)
    this.#previousLanes.delete(id)
  }

  /**
   * `reset` forgets everything. A lost server may come back, or be replaced, without the latest counter values; it then issues
   * these again.
   */
  reset(): void {
    this.reserve = new CounterReserve()
    this.#lanes = new ChurnMap()
    this.#previousLanes = new ChurnMap()
  }

  /** `recordServerTime` takes a sample of the server's clock that has just arrived. */
  recordServerTime(now: Millis): void {
    const at = systemClock.monotonic()
    const offset = now - at
    if (at - this.#sampledAt >= CLOCK_SAMPLE_LIFETIME) {
      this.#offsets = [offset, at - this.#sampledAt >= 2 * CLOCK_SAMPLE_LIFETIME ? -Infinity : this.#offsets[0]]
      this.#sampledAt = at
    } else this.#offsets = [Math.max(this.#offsets[0], offset), this.#offsets[1]]
  }

  /**
   * `now` estimates the server's time. The estimate is never ahead of the server's clock, and behind it by at most the fastest
   * round trip.
   */
  get now(): Millis | undefined {
    if (this.#clock !== undefined) return this.#clock.now()
    const at = systemClock.monotonic()
    if (at - this.#sampledAt >= 2 * CLOCK_SAMPLE_LIFETIME) return undefined
    return Math.floor(at + Math.max(...this.#offsets))
  }
}
