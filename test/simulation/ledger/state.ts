// The ledger: what must be true of every store, independently of the model, derived from the replies alone. It follows each
// placement (one event in one lane) from its acknowledgement to its one end, and each lease by its token.
import type { Millis } from '../../../src/clock.ts'
import type { LaneId } from '../../../src/model/identity.ts'

/** The id of a run that ended before any claim showed it. */
export const UNSEEN = '*'

export type PlacementState = 'waiting' | 'in a run' | 'done' | 'dead' | 'dropped' | 'superseded' | 'purged'

export interface Placement {
  readonly event: string
  readonly lane: LaneId
  readonly rank: 0 | 1
  readonly order: number
  readonly arrival: Millis
  /** By this time its window must have ended, even if more events arrived (I19). */
  readonly cap: Millis
  readonly quietEnds: Millis
  state: PlacementState
}

export interface LedgerRun {
  /** Undefined for the rest of a partial outcome, whose id its next claim shows. */
  id: string | undefined
  readonly parent: string
  items: readonly Placement[]
  token: number
  /** The run is live until then; 0 while it waits. */
  leaseEnds: Millis
  /** The earliest time of the next attempt (I17). */
  notBefore: Millis
  lapses: number
  tries: number
  readonly deadLetter: boolean
  /** The run settled as `cancelled`: it returns whole, or is dissolved. */
  maybeDissolved: boolean
  purged: boolean
  /** Events of a purged run that were not purged themselves. */
  innocent: readonly Placement[]
}

interface LedgerDeadLetter {
  readonly items: readonly Placement[]
  readonly parent: string
  blocks: boolean
  queued: boolean
}

export interface LedgerLane {
  readonly id: LaneId
  readonly flow: string
  readonly group: string
  placements: readonly Placement[]
  run: LedgerRun | undefined
  /** By id, or by `rest of <parent>` if the id is not known yet. */
  readonly deadLetters: Map<string, LedgerDeadLetter>
  lastEnd: Millis
  held: boolean
  /** Steered, purged or dissolved: until its next claim, replies do not show whether the lane is ready. */
  unsure: boolean
  /** How often each other lane was served while this one was ready (I9). */
  readonly passedBy: Map<LaneId, number>
}

export interface Ledger {
  readonly lanes: Map<LaneId, LedgerLane>
  readonly identities: Map<string, { readonly event: string; readonly until: Millis }>
  readonly stored: Set<string>
  readonly runIds: Set<string>
  readonly paused: Set<string>
  readonly permits: Map<string, Map<string, { readonly n: number; readonly ends: Millis }>>
  readonly marked: Map<string, number>
  lastToken: number
  order: number
  /** The latest time seen. An earlier time means that the clock jumped back, and waiting times mean nothing. */
  latest: Millis
}

export function newLedger(): Ledger {
  return {
    lanes: new Map(),
    identities: new Map(),
    stored: new Set(),
    runIds: new Set(),
    paused: new Set(),
    permits: new Map(),
    marked: new Map(),
    lastToken: 0,
    order: 0,
    latest: 0,
  }
}

/** Times before and after a jump of the clock cannot be compared, so no waiting is known. */
export function clockShows(ledger: Ledger, now: Millis): void {
  if (now < ledger.latest) {
    for (const lane of ledger.lanes.values()) {
      lane.passedBy.clear()
      lane.unsure = true
    }
  }
  ledger.latest = Math.max(ledger.latest, now)
}

export function ledgerLane(ledger: Ledger, of: { lane: LaneId; flow: string; group: string }): LedgerLane {
  const known = ledger.lanes.get(of.lane)
  if (known !== undefined) return known
  const lane: LedgerLane = {
    id: of.lane,
    flow: of.flow,
    group: of.group,
    placements: [],
    run: undefined,
    deadLetters: new Map(),
    lastEnd: 0,
    held: false,
    unsure: false,
    passedBy: new Map(),
  }
  ledger.lanes.set(lane.id, lane)
  return lane
}

export function waitingIn(lane: LedgerLane, rank: 0 | 1): readonly Placement[] {
  return lane.placements.filter((one) => one.state === 'waiting' && one.rank === rank)
}

/** An event has one unrouted record more, or fewer. */
export function countUnrouted(ledger: Ledger, event: string, more: number): void {
  const left = (ledger.marked.get(event) ?? 0) + more
  if (left > 0) ledger.marked.set(event, left)
  else ledger.marked.delete(event)
}

export function isLeased(run: LedgerRun, now: Millis): boolean {
  return run.leaseEnds > now
}

export function endAll(items: readonly Placement[], state: PlacementState): void {
  for (const item of items) item.state = state
}

/** Whether by the rules the lane may certainly be served now as a healthy lane. */
export function isSurelyReady(ledger: Ledger, lane: LedgerLane, now: Millis): boolean {
  if (now < ledger.latest || lane.lastEnd > now || lane.held || lane.unsure || lane.run !== undefined) return false
  if ([...lane.deadLetters.values()].some((deadLetter) => deadLetter.blocks || deadLetter.queued)) return false
  const live = waitingIn(lane, 0)
  const last = lane.placements.findLast((one) => one.rank === 0)
  const windowOver = live.some((one) => one.cap <= now) || (last !== undefined && last.quietEnds <= now)
  return (live.length > 0 && windowOver) || waitingIn(lane, 1).length > 0
}
