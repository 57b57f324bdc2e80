// `toLeasedRuns` builds the leases that a claim returns. `renewLeases` extends them while their holder works (L1,
// L6c).
import { addDelay } from '../../clock.ts'
import { scheduleLane, isLiveRun, type Lane, type RunState } from '../../model/lane.ts'
import type { ClaimedEvent, LeasedRun, RenewCall, RenewReply } from '../contract/index.ts'
import { getRunPlacements } from './settle.ts'
import type { PlacedEvent, PlacementRow } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

/** `BodyBudget` bounds the bytes of bodies in one reply. The first body is always included, however big it is. */
export class BodyBudget {
  #left: number
  #used = false

  constructor(bytes: number) {
    this.#left = bytes
  }

  admits(body: Uint8Array): boolean {
    if (this.#used && body.length > this.#left) return false
    this.#used = true
    this.#left -= body.length
    return true
  }
}

/** `ClaimedRun` is a claimed run before its events are read. */
export interface ClaimedRun {
  readonly lane: Lane
  readonly due: number
  readonly superseded: number
  readonly placements: readonly PlacementRow[]
}

export function toClaimedRun(work: CommitContext, lane: Lane, due: number, superseded: number): ClaimedRun {
  const placements = lane.run === undefined || lane.run.purged ? [] : getRunPlacements(work, lane, lane.run)
  return { lane, due, superseded, placements }
}

/** `toLeasedRuns` reads the events of all runs in one query. */
export function toLeasedRuns(
  work: CommitContext,
  runs: readonly ClaimedRun[],
  budget: BodyBudget,
): readonly LeasedRun[] {
  const placements = runs.flatMap((run) => run.placements)
  const events = new Map(work.tables.events.findPlaced(placements).map((event) => [event.seq, event]))
  const hand = (event: PlacedEvent): ClaimedEvent => {
    // Another lane may hold the same event, so each run gets its own copy of the bytes.
    if (placements.length > events.size) events.set(event.seq, { ...event, body: event.body.slice() })
    return toClaimedEvent(event, budget)
  }
  const leases: LeasedRun[] = []
  for (const one of runs) {
    const { run } = one.lane
    if (run === undefined) continue
    const claimed: ClaimedEvent[] = []
    for (const placement of one.placements) {
      const event = events.get(placement.event)
      if (event !== undefined) claimed.push(hand(event))
    }
    leases.push(toLeasedRun(one, run, claimed))
  }
  return leases
}

function toLeasedRun({ lane, due, superseded }: ClaimedRun, run: RunState, events: readonly ClaimedEvent[]): LeasedRun {
  return {
    lane: lane.id,
    flow: lane.flow,
    key: lane.key,
    tenant: lane.tenant,
    group: lane.group,
    runId: run.id,
    parent: run.parent,
    token: run.token,
    rank: run.rank,
    isDeadLetter: run.isDeadLetter,
    replay: run.replay,
    tries: run.tries,
    lapses: run.lapses,
    failingSince: run.failingSince,
    snoozedSince: run.snoozedSince,
    stateBase64: run.state64,
    due,
    until: run.until,
    events,
    superseded,
  }
}

function toClaimedEvent(event: PlacedEvent, budget: BodyBudget): ClaimedEvent {
  const { id, source, type, time, tenant, subject, attributes, arrived, body } = event
  return { id, source, type, time, tenant, subject, attributes, arrived, body: budget.admits(body) ? body : undefined }
}

export function renewLeases(work: CommitContext, call: RenewCall): RenewReply['results'] {
  return call.runs.map(({ lane: id, token, commit }) => {
    const lane = work.tables.lanes.get(id)
    const run = lane?.run
    if (lane === undefined || run === undefined || run.token !== token || !isLiveRun(run, work.now)) return 'lost'
    const committed = run.committed || (commit && !run.cancel)
    const until = addDelay(work.now, call.lease)
    work.tables.lanes.put(scheduleLane({ ...lane, run: { ...run, until, committed } }, work.draw, 'if-moved'))
    return run.purged ? 'purged' : run.cancel ? 'cancel' : 'ok'
  })
}
