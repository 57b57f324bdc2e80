// `LaneScan` reads what the lanes of an app are doing, for the status and the lists of the dashboard. One scan serves all callers and
// lasts for a moment, so its cost does not grow with the number of people who watch.
import type { Clock, Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane, RunState } from '../../model/lane.ts'
import { getLaneState, type LaneState } from '../../model/lane-states.ts'
import type { FindReply, Store } from '../../store/contract/index.ts'
import { findDeferringLimit } from '../explain/lane-facts.ts'

/** `LaneSummary` is the part of a lane that counts, filters and orders. A key may have 16 KB, so it is cut. */
export interface LaneSummary extends Pick<
  Lane,
  'id' | 'flow' | 'tenant' | 'group' | 'due' | 'ticket' | 'health' | 'blocks' | 'hold'
> {
  readonly keyStart: string
  /** The events that wait, and those of a run that waits for its next attempt. */
  readonly waiting: number
  readonly run: Pick<RunState, 'id' | 'state' | 'until' | 'started' | 'events'> | undefined
  /** The limit that deferred the run. */
  readonly deferredBy: string | undefined
}

/** `limited` is a snoozed lane whose run was deferred by a limit. */
export type ShownLaneState = LaneState | 'limited'

export interface LaneScanResult {
  readonly lanes: readonly LaneSummary[]
  /** The store's time now; the lanes may be a moment older. */
  readonly now: Millis
  /** False if there are more lanes than were read. */
  readonly isExact: boolean
}

export interface LaneScanDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
}

const MAX_SCANNED_LANES = 20_000
const PAGE = 1_000
const KEY_LENGTH = 256
/** A scan serves all calls within this time. */
const FRESH_FOR: Millis = 1_000
/** A scan that took longer than this is repeated in the background, and callers get the one before. */
const SLOW: Millis = 25
/** An older scan is never returned. */
const STALE_AFTER: Millis = 10_000
/** A slow scan pauses for this many times its own duration, so that it takes a small share of the process. */
const REST_FACTOR = 10

interface StoredScan {
  readonly lanes: readonly LaneSummary[]
  readonly storeTime: Millis
  readonly isExact: boolean
  /** On the monotonic clock. */
  readonly endedAt: Millis
  readonly took: Millis
}

export class LaneScan {
  readonly #deps: LaneScanDependencies
  #last: StoredScan | undefined
  #running: Promise<StoredScan> | undefined

  constructor(deps: LaneScanDependencies) {
    this.#deps = deps
  }

  async read(): Promise<LaneScanResult> {
    const { lanes, storeTime, isExact, endedAt } = await this.#findScan()
    return { lanes, isExact, now: Math.floor(storeTime + this.#deps.clock.monotonic() - endedAt) }
  }

  #findScan(): StoredScan | Promise<StoredScan> {
    const last = this.#last
    if (last === undefined) return this.#refresh()
    const age = this.#deps.clock.monotonic() - last.endedAt
    if (age < Math.max(FRESH_FOR, Math.min(REST_FACTOR * last.took, STALE_AFTER))) return last
    const next = this.#refresh()
    if (last.took <= SLOW || age > STALE_AFTER) return next
    // The next caller that has to wait for the scan learns why it failed.
    next.catch(() => {})
    return last
  }

  #refresh(): Promise<StoredScan> {
    this.#running ??= this.#scan().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #scan(): Promise<StoredScan> {
    const { clock } = this.#deps
    const store = await this.#deps.store()
    const startedAt = clock.monotonic()
    // By id: lanes change between two pages, so one lane may appear twice.
    const lanes = new Map<LaneId, LaneSummary>()
    let cursor: string | undefined = ''
    let storeTime = 0
    for (let pages = 0; cursor !== undefined && pages < MAX_SCANNED_LANES / PAGE; pages++) {
      const page: FindReply<'lanes'> = await store.find({
        kind: 'lanes',
        filter: {},
        cursor,
        n: PAGE,
        oldestFirst: true,
      })
      for (const lane of page.items) lanes.set(lane.id, toLaneSummary(lane))
      cursor = page.next
      storeTime = page.now
    }
    const endedAt = clock.monotonic()
    const isExact = cursor === undefined
    this.#last = { lanes: [...lanes.values()], storeTime, isExact, endedAt, took: endedAt - startedAt }
    return this.#last
  }
}

function toLaneSummary(lane: Lane): LaneSummary {
  const { id, flow, key, tenant, group, due, ticket, health, blocks, hold, run } = lane
  const inRun = run === undefined || run.state === 'running' ? 0 : run.events
  return {
    id,
    flow,
    keyStart: key.length > KEY_LENGTH ? copyStart(key) : key,
    tenant,
    group,
    due,
    ticket,
    health,
    blocks,
    hold,
    waiting: lane.waiting + lane.replays + inRun,
    run: run === undefined ? undefined : toRunSummary(run),
    deferredBy: run?.state === 'snoozed' ? findDeferringLimit(run.state64) : undefined,
  }
}

/** A slice of a string keeps the whole string in memory, so the start is copied. */
function copyStart(key: string): string {
  return Buffer.from(key.slice(0, KEY_LENGTH)).toString()
}

function toRunSummary({ id, state, until, started, events }: RunState): NonNullable<LaneSummary['run']> {
  return { id, state, until, started, events }
}

export function getShownState(lane: LaneSummary, now: Millis): ShownLaneState {
  const state = getLaneState(lane, now)
  return state === 'snoozed' && lane.deferredBy !== undefined ? 'limited' : state
}

const NOT_IN_LINE: ReadonlySet<ShownLaneState> = new Set(['running', 'held', 'blocked', 'idle'])

/** `isInLine` returns whether the deadline of the lane has passed and a process may claim it. */
export function isInLine(lane: Pick<LaneSummary, 'due'>, state: ShownLaneState, now: Millis): boolean {
  return lane.due <= now && !NOT_IN_LINE.has(state)
}
