// `CommitContext` is one commit in progress: the tables, the time, and the hints and feed entries to emit after it.
import type { Millis } from '../../clock.ts'
import {
  createLane,
  isEmptyLane,
  dropExpiredHold,
  type Lane,
  type LaneIdentity,
  type TransitionContext,
} from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { FeedEntry, FeedLane, Hint } from '../contract/index.ts'
import type { RunRow, Tables } from './tables.ts'

export type NewFeedEntry = Omit<FeedEntry, 'seq'>

/** The feed keeps thousands of entries in memory, and a key may have 16 KB. */
const MAX_FEED_KEY_LENGTH = 256

export class CommitContext implements TransitionContext {
  readonly tables: Tables
  readonly now: Millis
  readonly draw: () => number
  readonly feedEntries: NewFeedEntry[] = []
  readonly #hints: Hint[] = []
  readonly #dueFlows = new Set<string>()

  constructor(tables: Tables, now: Millis) {
    this.tables = tables
    this.now = now
    this.draw = tables.draw
  }

  addFeedEntry(entry: NewFeedEntry): void {
    this.feedEntries.push(entry)
  }

  /** `addLaneFeedEntry` adds an entry about a lane, or about the run or dead letter `id` of the lane. */
  addLaneFeedEntry(
    lane: Pick<Lane, 'id' | 'flow' | 'key'>,
    kind: NewFeedEntry['kind'],
    detail: string,
    id: string = lane.id,
  ): void {
    const { flow, key } = lane
    this.feedEntries.push({ kind, id, detail, at: this.now, ...toFeedLane({ lane: lane.id, flow, key }) })
  }

  addHint(hint: Exclude<Hint, { kind: 'due' }>): void {
    this.#hints.push(hint)
  }

  /** `markDue` records that a lane of the flow has a deadline now. */
  markDue(flow: string): void {
    this.#dueFlows.add(flow)
  }

  get hints(): readonly Hint[] {
    return [...this.#hints, ...Array.from(this.#dueFlows, (flow) => ({ kind: 'due', flow }) as const)]
  }

  /** `getOrCreateLane` returns the stored lane, or a new one. */
  getOrCreateLane(name: LaneIdentity): Lane {
    return this.tables.lanes.get(name.id) ?? { ...createLane(name), row: this.draw() }
  }

  /** `saveLane` stores the lane, or removes it if nothing is left in it. */
  saveLane(lane: Lane): void {
    if (isEmptyLane(lane, this.now)) this.tables.lanes.remove(lane)
    else this.tables.lanes.put(dropExpiredHold(lane, this.now))
  }

  /** `drawRunId` returns a run id that no store has used. */
  drawRunId(): string {
    return formatRunId(this.tables.name, this.draw())
  }
}

/** `isPlainRun` returns whether the run was done at the first attempt, as most runs are. */
export function isPlainRun(run: RunRow): boolean {
  const atOnce = run.kind === 'done' && run.tries === 0 && run.lapses === 0 && run.attempts.length === 0
  return atOnce && run.parent === '' && run.tenant === '' && run.reason === ''
}

/** `formatRunId` returns the id of a run. `store` is the name of the store. */
export function formatRunId(store: string, n: number): string {
  return `${store}-${n.toString(36)}`
}

/** `parseRunNumber` returns the number in a run id. Runs sort by it in the order in which they began. */
export function parseRunNumber(id: string): number {
  return Number.parseInt(id.slice(id.lastIndexOf('-') + 1), 36)
}

/** `LaneSession` reads and writes each lane once per call, even if the call changes it several times. */
export class LaneSession {
  readonly #context: CommitContext
  readonly #lanes = new Map<LaneId, Lane>()

  constructor(work: CommitContext) {
    this.#context = work
  }

  get(name: LaneIdentity): Lane {
    return this.#lanes.get(name.id) ?? this.#context.getOrCreateLane(name)
  }

  set(lane: Lane): void {
    this.#lanes.set(lane.id, lane)
  }

  save(): void {
    for (const lane of this.#lanes.values()) this.#context.saveLane(lane)
    this.#lanes.clear()
  }
}

/** `toFeedLane` leaves out a long key. */
export function toFeedLane({ lane, flow, key }: FeedLane & { readonly key: string }): FeedLane {
  return key.length <= MAX_FEED_KEY_LENGTH ? { lane, flow, key } : { lane, flow }
}
