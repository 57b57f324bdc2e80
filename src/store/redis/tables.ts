// `RedisTables` holds the tables of the store as one transaction sees them: loaded rows, misses and changes.
import type { EventIdentity, LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import { EMPTY_OUTBOX, type OutboxTable, type Tables } from '../core/tables.ts'
import { Counter, NUMBERS_PER_COMMIT } from './counter.ts'
import { RedisEvents } from './events.ts'
import { RedisLanes } from './lanes.ts'
import { RedisLimits, type NamedLimit } from './limits.ts'
import { RedisPlacements, type RunPlacements } from './placements.ts'
import { RedisRecords } from './records.ts'
import { RowCache } from './row-cache.ts'
import { CommitRequest, LoadRequest } from './script-requests.ts'
import { RedisDocs, RedisSmallTables, type SmallRow } from './small-tables.ts'
import type { TransactionPart } from './table-view.ts'
import { RedisDeadLetters, RedisRuns, RedisUnrouted } from './work-tables.ts'

/** `ProcessCache` is what a process keeps from one transaction to the next. */
export class ProcessCache {
  readonly lanes: RowCache<Lane> = new RowCache()
  readonly limits: RowCache<NamedLimit> = new RowCache()
  readonly small: RowCache<SmallRow> = new RowCache()
  readonly counter: Counter = new Counter()
  readonly runPlacements: RunPlacements = new Map()

  /** After a lost reply, the state of the server is unknown. A server that lost its last writes would repeat numbers. */
  forget(): void {
    for (const cache of [this.lanes, this.limits, this.small]) cache.clear()
    this.counter.forget()
    this.runPlacements.clear()
  }
}

/** The numbers of the store that need no row. */
class Meta implements TransactionPart {
  readonly #key: string
  #bytes: number | undefined
  #isMissing = false

  constructor(key: string) {
    this.#key = key
  }

  get bytes(): number {
    this.#isMissing ||= this.#bytes === undefined
    return this.#bytes ?? 0
  }

  resetPass(): void {
    this.#isMissing = false
  }

  get hasMisses(): boolean {
    return this.#isMissing
  }

  addReads(load: LoadRequest): void {
    if (!this.#isMissing) return
    this.#isMissing = false
    load.readRows(this.#key, ['bytes'], ([bytes]) => (this.#bytes = Number(bytes ?? 0)))
  }

  addCommit(): void {}
  updateCache(): void {}
  forgetLoaded(): void {
    this.#bytes = undefined
  }
}

export interface RedisTablesOptions {
  /** The beginning of all keys, with the hash tag. */
  readonly prefix: string
  readonly name: string
  readonly cache: ProcessCache
}

export class RedisTables implements Tables {
  readonly name: string
  readonly draw: () => number
  readonly outbox: OutboxTable = EMPTY_OUTBOX
  readonly lanes: RedisLanes
  readonly placements: RedisPlacements
  readonly events: RedisEvents
  readonly runs: RedisRuns
  readonly deadLetters: RedisDeadLetters
  readonly unrouted: RedisUnrouted
  readonly limits: RedisLimits
  readonly small: RedisSmallTables
  readonly docs: RedisDocs
  readonly records: RedisRecords = new RedisRecords(this)
  readonly meta: Meta
  readonly #metaKey: string
  readonly #cache: ProcessCache
  readonly #parts: readonly TransactionPart[]

  constructor({ prefix, name, cache }: RedisTablesOptions) {
    this.name = name
    this.#cache = cache
    this.#metaKey = toMetaKey(prefix)
    this.draw = cache.counter.draw
    const isFresh = (n: number): boolean => cache.counter.isFresh(n)
    this.lanes = new RedisLanes({ prefix, cache: cache.lanes }, { prefix })
    this.placements = new RedisPlacements(prefix, cache.runPlacements)
    this.events = new RedisEvents(prefix, this.#metaKey, { draw: this.draw, isFresh })
    this.runs = new RedisRuns({ prefix }, isFresh)
    this.deadLetters = new RedisDeadLetters({ prefix }, isFresh)
    this.unrouted = new RedisUnrouted({ prefix }, isFresh)
    this.limits = new RedisLimits(prefix, cache.limits)
    this.small = new RedisSmallTables(prefix, cache.small)
    this.docs = new RedisDocs({ prefix })
    this.meta = new Meta(this.#metaKey)
    this.#parts = [
      this.lanes.view,
      this.lanes.served,
      this.placements,
      ...this.events.parts,
      this.runs.view,
      this.deadLetters.view,
      this.unrouted.view,
      ...this.limits.parts,
      this.small.view,
      ...this.docs.parts,
      this.meta,
    ]
    cache.counter.begin()
  }

  /** Events that arrive are taken for new, and so are lanes that this process does not know. */
  assumeNew(isNew: boolean): void {
    this.events.assumeNew(isNew)
    this.lanes.view.assumesNew = isNew
  }

  prefetch(lanes: readonly LaneId[], identities: readonly EventIdentity[]): void {
    for (const lane of lanes) this.lanes.get(lane)
    for (const identity of identities) this.events.findByIdentity(identity)
  }

  /** The server says itself when it is full. */
  hasRoomFor(): boolean {
    return true
  }

  routes(): number {
    return this.small.routes
  }

  raiseRoutes(): void {
    this.small.raiseRoutes()
  }

  resetPass(): void {
    for (const part of this.#parts) part.resetPass()
    this.lanes.resetPass()
    this.#cache.counter.resetPass()
  }

  get hasMisses(): boolean {
    return this.#cache.counter.hasMisses || this.#parts.some((part) => part.hasMisses)
  }

  /** `buildLoad` asks for everything that the last pass lacked. A transaction that writes draws its numbers after each load. */
  buildLoad(isReadOnly: boolean): LoadRequest {
    const load = new LoadRequest(this.#metaKey)
    if (!isReadOnly) load.draws = this.#cache.counter.wanted
    const keys = { rows: this.events.rows.hash, bodies: this.events.bodies.hash }
    this.placements.addFirst(load, keys, (placed) => this.events.setPlaced(placed))
    for (const part of this.#parts) part.addReads(load)
    return load
  }

  /** `buildCommit` checks what the last pass has read, and writes what it changed. Without `isWriting`, it only checks. */
  buildCommit(version: string, isWriting: boolean): CommitRequest {
    const commit = new CommitRequest(this.#metaKey, version, isWriting)
    commit.counter = this.#cache.counter.expected
    commit.draws = NUMBERS_PER_COMMIT
    for (const part of this.#parts) part.addCommit(commit, version)
    return commit
  }

  updateCache(version: string): void {
    for (const part of this.#parts) part.updateCache(version)
  }

  forgetLoaded(): void {
    for (const part of this.#parts) part.forgetLoaded()
  }
}

export function toMetaKey(prefix: string): string {
  return `${prefix}:meta`
}
