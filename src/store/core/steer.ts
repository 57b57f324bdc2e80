// `steer` applies an operator's actions to lanes, dead letters, unrouted events and flows. Each item is atomic by
// itself (L9, L14).
import { addDelay } from '../../clock.ts'
import { isLiveRun, type Lane } from '../../model/lane.ts'
import { isRoutingFault, mergeSkips } from '../../model/routing.ts'
import { queueDeadLetter, steer as steered, unblockLane, unqueueDeadLetter, withdrawEvents } from '../../model/steer.ts'
import type { LaneAction, RunRecord, SteerCall, SteerReply } from '../contract/index.ts'
import { finishRun, recordRun, unblockIfBlockedBy } from './settle.ts'
import type { DeadLetterRow, PlacementRow, UnroutedRow } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

type SteerResult = SteerReply['results'][number]

export function steer(work: CommitContext, call: SteerCall): readonly SteerResult[] {
  switch (call.what) {
    case 'lanes':
      return call.ids.map((id) => steerLane(work, work.tables.lanes.get(id), call.act))
    case 'dead':
      return call.ids.map((id) => steerDeadLetter(work, work.tables.deadLetters.get(id), call.act))
    case 'unrouted':
      return call.ids.map((id) => steerUnrouted(work, id, call.act))
    case 'flows':
      return call.ids.map((flow) => {
        const paused = work.tables.small.getPause(flow) !== undefined
        if (paused === (call.act.kind === 'pause')) return 'already'
        const { act } = call
        work.tables.small.putPause(
          flow,
          act.kind === 'pause' ? { reason: act.reason, by: act.by, since: work.now } : undefined,
        )
        work.markDue(flow)
        work.addFeedEntry({ kind: 'steered', flow, id: flow, detail: act.kind, at: work.now })
        return 'ok'
      })
  }
}

function steerLane(work: CommitContext, lane: Lane | undefined, act: LaneAction): SteerResult {
  if (lane === undefined) return 'missing'
  const live = lane.run !== undefined && isLiveRun(lane.run, work.now)
  if (act.kind === 'drop') return dropLane(work, lane, live)
  if (act.kind === 'run-now' && live) return 'running'
  if (act.kind === 'cancel' && !live) return 'missing'
  const next = steered(
    lane,
    act.kind === 'hold'
      ? { kind: 'hold', hold: { reason: act.reason, by: act.by, until: addDelay(work.now, act.for) } }
      : { kind: act.kind },
    work,
  )
  if (next === undefined) return 'already'
  work.saveLane(next)
  work.markDue(lane.flow)
  if (act.kind === 'cancel' && next.run !== undefined) {
    work.addHint({ kind: 'cancel', lane: lane.id, token: next.run.token })
  }
  work.addLaneFeedEntry(lane, 'steered', act.kind)
  return 'ok'
}

/** Ends all waiting events, and a run between attempts, as dropped. */
function dropLane(work: CommitContext, lane: Lane, live: boolean): SteerResult {
  let next = lane
  if (lane.run !== undefined && !live) {
    const call = { whileRunning: 'window', keep: 0 } as const
    next = finishRun(work, lane, lane.run, { call, kind: 'dropped', reason: 'by hand' })
  }
  const waiting = removeWaitingPlacements(work, next, 0)
  const replays = removeWaitingPlacements(work, next, 1)
  if (next === lane && waiting.length + replays.length === 0) return live ? 'running' : 'already'
  recordDropped(work, next, [...waiting, ...replays], 'dropped')
  const bytes = waiting.reduce((sum, placement) => sum + placement.size, 0)
  work.saveLane(withdrawEvents(next, { waiting: waiting.length, replays: replays.length, bytes }, work))
  work.addLaneFeedEntry(lane, 'steered', 'drop')
  return 'ok'
}

/** Removes the waiting placements of a lane, but not those of its run. */
function removeWaitingPlacements(work: CommitContext, lane: Lane, rank: 0 | 1): readonly PlacementRow[] {
  const count = rank === 0 ? lane.waiting : lane.replays
  if (count === 0) return []
  const { placements } = work.tables
  const held = lane.run !== undefined && !lane.run.isDeadLetter && lane.run.rank === rank ? lane.run.upto : 0
  const gone = placements.findUpTo(lane, rank, lane.tail).filter((placement) => placement.pos > held)
  placements.remove(
    lane,
    rank,
    gone.map((placement) => placement.pos),
  )
  return gone
}

/** Events that end without ever running also get a run record. */
function recordDropped(
  work: CommitContext,
  lane: Lane,
  placements: readonly PlacementRow[],
  kind: RunRecord['kind'],
): void {
  if (placements.length === 0) return
  const run = { id: work.drawRunId(), parent: '', started: work.now, tries: 0, lapses: 0, attempts: [] }
  recordRun(work, lane, run, { kind, reason: 'by hand', placements })
}

function steerDeadLetter(
  work: CommitContext,
  deadLetter: DeadLetterRow | undefined,
  act: 'retry' | 'drop' | 'unblock',
): SteerResult {
  if (deadLetter === undefined) return 'missing'
  if (act === 'unblock') return unblockDeadLetter(work, deadLetter)
  if (act === 'drop') {
    if (deadLetter.state === 'running') return 'running'
    removeDeadLetter(work, deadLetter, 'dropped')
    return 'ok'
  }
  if (deadLetter.state !== 'dead') return 'already'
  work.tables.deadLetters.put({ ...deadLetter, state: 'queued' })
  const lane = getDeadLetterLane(work, deadLetter)
  work.saveLane(queueDeadLetter(lane, work))
  work.markDue(deadLetter.flow)
  work.addLaneFeedEntry(lane, 'steered', 'retry', deadLetter.id)
  return 'ok'
}

/** The lane may be gone, because a dead letter does not keep it. */
function getDeadLetterLane(work: CommitContext, deadLetter: DeadLetterRow): Lane {
  const { lane: id, flow, key, tenant, group } = deadLetter
  return work.getOrCreateLane({ id, flow, key, tenant, group })
}

function unblockDeadLetter(work: CommitContext, deadLetter: DeadLetterRow): SteerResult {
  if (!deadLetter.blocks) return 'already'
  work.tables.deadLetters.put({ ...deadLetter, blocks: false })
  const lane = getDeadLetterLane(work, deadLetter)
  work.saveLane(unblockLane(lane, work))
  work.markDue(deadLetter.flow)
  work.addLaneFeedEntry(lane, 'steered', 'unblock', deadLetter.id)
  return 'ok'
}

/** `removeDeadLetter` ends a dead letter. If the dead letter blocked its lane, the lane continues. */
export function removeDeadLetter(
  work: CommitContext,
  deadLetter: DeadLetterRow,
  kind: 'dropped' | 'purged' | 'expired',
): void {
  const freed = unblockIfBlockedBy(work, getDeadLetterLane(work, deadLetter), deadLetter.id)
  const lane = deadLetter.state === 'queued' ? unqueueDeadLetter(freed, work) : freed
  if (kind === 'dropped') {
    const run = { ...deadLetter, started: deadLetter.at }
    recordRun(work, lane, run, { kind, reason: deadLetter.reason, placements: deadLetter.placements })
  }
  work.tables.deadLetters.remove(deadLetter.id)
  work.saveLane(lane)
  work.markDue(deadLetter.flow)
  work.addLaneFeedEntry(lane, 'steered', kind, deadLetter.id)
}

/** The event keeps a record that the flow never got it. */
function dropUnrouted(work: CommitContext, { id, event: seq, flow }: UnroutedRow): void {
  const { unrouted, events } = work.tables
  unrouted.remove(id)
  const event = events.findBySeq(seq)
  if (event === undefined) return
  const skips = mergeSkips(event.skips, [{ flow, reason: 'dropped' }], NO_PLACEMENTS)
  events.setRouting(seq, { lanes: event.lanes, skips })
}

const NO_PLACEMENTS = [] as const

function steerUnrouted(work: CommitContext, id: number, act: 'retry' | 'drop'): SteerResult {
  const { unrouted } = work.tables
  const entry = unrouted.get(id)
  if (entry === undefined) return 'missing'
  if (act === 'drop') dropUnrouted(work, entry)
  else unrouted.put({ ...entry, reason: getRetryReason(entry), due: work.now, token: 0 })
  return 'ok'
}

/** Processes claim `key-failed` and `schema-failed` events only after a start. An event that an operator retries must be routed by any process. */
function getRetryReason({ reason }: UnroutedRow): UnroutedRow['reason'] {
  return isRoutingFault(reason) ? 'routes-old' : reason
}
