// `settleRun` stores how a run ended, for the holder of the live token (L1, L6, L6c, L8, L9).
import { addDelay, NEVER } from '../../clock.ts'
import { createDeadLetterEvent, isAboutEngine } from '../../model/dead-letter-event.ts'
import { isLiveRun, type Lane, type RunState } from '../../model/lane.ts'
import {
  dissolveRun,
  endRun,
  failAttempt,
  deferRun,
  canDissolveRun,
  scheduleNextAttempt,
  rememberRunEnd,
  snoozeRun,
  type RunEndOptions,
} from '../../model/settle.ts'
import { unblockLane } from '../../model/steer.ts'
import type { AppendResult, RunRecord, Settlement, SettleResult } from '../contract/index.ts'
import { appendPublished, appendUnplaced } from './append.ts'
import type { PlacementRow } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

interface SettlementResult {
  readonly settled: SettleResult
  /** The result for each event that the settlement published. */
  readonly published: readonly AppendResult[]
}

export function settleRun(work: CommitContext, call: Settlement, routes: number): SettlementResult {
  const lane = work.tables.lanes.get(call.lane)
  const run = lane?.run
  if (lane === undefined || run === undefined || run.token !== call.token || !isLiveRun(run, work.now)) return LOST
  if (run.purged) {
    work.saveLane(endPurgedRun(work, lane, run, call))
    return PURGED
  }
  const next = applyOutcome(work, lane, run, call)
  work.saveLane(next)
  const published = appendPublished(work, call.publish, routes)
  if (next.due < NEVER) work.markDue(lane.flow)
  work.addLaneFeedEntry(lane, 'settled', call.outcome.kind, run.id)
  return { settled: 'ok', published }
}

const LOST: SettlementResult = { settled: 'lost', published: [] }
const PURGED: SettlementResult = { settled: 'purged', published: [] }

function applyOutcome(work: CommitContext, lane: Lane, run: RunState, call: Settlement): Lane {
  const outcome = call.outcome
  switch (outcome.kind) {
    case 'done':
    case 'dropped':
      return finishRun(work, lane, run, {
        call,
        kind: outcome.kind,
        reason: outcome.kind === 'done' ? '' : outcome.reason,
      })
    case 'retry':
      return scheduleNextAttempt(
        lane,
        failAttempt(run, call.attempt, work.now),
        addDelay(work.now, outcome.after),
        work,
      )
    case 'snoozed':
      return scheduleNextAttempt(
        lane,
        snoozeRun(run, outcome.state64, work.now),
        addDelay(work.now, outcome.after),
        work,
      )
    case 'released':
      return scheduleNextAttempt(lane, deferRun(run, outcome.state64), addDelay(work.now, outcome.after), work)
    case 'cancelled':
      if (!canDissolveRun(run, work.now)) return scheduleNextAttempt(lane, deferRun(run, run.state64), work.now, work)
      recordRun(work, lane, run, { kind: 'cancelled', reason: '', placements: getRunPlacements(work, lane, run) })
      return dissolveRun(lane, run, call, work)
    case 'dead':
      return moveToDeadLetters(work, lane, failAttempt(run, call.attempt, work.now), {
        call,
        reason: outcome.reason,
        block: outcome.block,
      })
    case 'partial':
      return settlePartial(work, lane, run, call)
  }
}

/** `getRunPlacements` returns the placements of a run. A dead letter keeps its own placements; the lane keeps those of other runs. */
export function getRunPlacements(work: CommitContext, lane: Lane, run: RunState): readonly PlacementRow[] {
  return run.isDeadLetter
    ? (work.tables.deadLetters.get(run.id)?.placements ?? [])
    : work.tables.placements.findUpTo(lane, run.rank, run.upto)
}

/** Removes the events of a run from the lane permanently. */
function takeRunPlacements(work: CommitContext, lane: Lane, run: RunState): readonly PlacementRow[] {
  if (!run.isDeadLetter) return work.tables.placements.takeUpTo(lane, run.rank, run.upto)
  const placements = getRunPlacements(work, lane, run)
  work.tables.deadLetters.remove(run.id)
  return placements
}

interface RunEnding {
  readonly call: RunEndOptions
  readonly kind: RunRecord['kind']
  readonly reason: string
}

/** `finishRun` ends the run and its events. */
export function finishRun(work: CommitContext, lane: Lane, run: RunState, ending: RunEnding): Lane {
  const freed = run.isDeadLetter ? unblockIfBlockedBy(work, lane, run.id) : lane
  // A dead letter that runs again already has a run record.
  recordRun(work, lane, run, { ...ending, placements: takeRunPlacements(work, lane, run), isFirst: !run.isDeadLetter })
  return endRun(freed, ending.call, work)
}

/** `unblockIfBlockedBy` unblocks the lane if that dead letter blocked it. */
export function unblockIfBlockedBy(work: CommitContext, lane: Lane, deadLetter: string): Lane {
  return work.tables.deadLetters.get(deadLetter)?.blocks === true ? unblockLane(lane, work) : lane
}

interface RunRecordDetails {
  readonly kind: RunRecord['kind']
  readonly reason: string
  readonly placements: readonly PlacementRow[]
  readonly isFirst?: boolean
}

type RunSummary = Pick<RunState, 'id' | 'parent' | 'started' | 'tries' | 'lapses' | 'attempts'>

export function recordRun(work: CommitContext, lane: Lane, run: RunSummary, what: RunRecordDetails): void {
  const made = {
    id: run.id,
    parent: run.parent,
    lane: lane.id,
    flow: lane.flow,
    key: lane.key,
    tenant: lane.tenant,
    kind: what.kind,
    reason: what.reason,
    started: run.started,
    ended: work.now,
    tries: run.tries,
    lapses: run.lapses,
    events: what.placements.map((placement) => placement.event),
    attempts: run.attempts,
  }
  work.tables.runs.put(made, what.isFirst === true)
}

interface DeadLetterDetails {
  readonly call: RunEndOptions
  readonly reason: string
  readonly block: boolean
}

/**
 * `moveToDeadLetters` makes the run a dead letter, or a dead letter again. The lane continues, unless the dead letter blocks it
 * (L9).
 */
export function moveToDeadLetters(work: CommitContext, lane: Lane, run: RunState, details: DeadLetterDetails): Lane {
  const deadLetters = work.tables.deadLetters
  const old = run.isDeadLetter ? deadLetters.get(run.id) : undefined
  const placements = takeRunPlacements(work, lane, run)
  recordRun(work, lane, run, { kind: 'dead', reason: details.reason, placements })
  const deadLetter: NewDeadLetter = { ...details, placements, old, ofRun: { id: run.id, token: run.token, placements } }
  return endRun(putDeadLetter(work, lane, run, deadLetter), details.call, work)
}

interface NewDeadLetter extends DeadLetterDetails {
  readonly placements: readonly PlacementRow[]
  readonly old: { readonly order: number; readonly blocks: boolean } | undefined
  /** The run that died, with all its events: a part of them may have been accepted. */
  readonly ofRun: Pick<RunState, 'id' | 'token'> & { readonly placements: readonly PlacementRow[] }
}

function putDeadLetter(work: CommitContext, lane: Lane, run: RunState, deadLetter: NewDeadLetter): Lane {
  const blocked = deadLetter.old?.blocks === true
  work.tables.deadLetters.put({
    id: run.id,
    parent: run.parent,
    replay: run.replay,
    lane: lane.id,
    flow: lane.flow,
    key: lane.key,
    tenant: lane.tenant,
    group: lane.group,
    state: 'dead',
    reason: deadLetter.reason,
    at: work.now,
    tries: run.tries,
    lapses: run.lapses,
    blocks: blocked || deadLetter.block,
    attempts: run.attempts,
    order: deadLetter.old?.order ?? work.draw(),
    placements: deadLetter.placements,
  })
  announceDeadLetter(work, lane, run, deadLetter)
  return deadLetter.block && !blocked ? { ...lane, blocks: lane.blocks + 1 } : lane
}

/** Stores the event `sluice/run.dead` in the commit that makes the run dead, so that a crash neither loses nor repeats it. */
function announceDeadLetter(work: CommitContext, lane: Lane, deadRun: RunState, deadLetter: NewDeadLetter): void {
  const { reason, placements, ofRun: run, call } = deadLetter
  const { announceDeadAfter: known } = call
  if (known === undefined || work.tables.routes() <= known) return
  const events = new Map(work.tables.events.findPlaced(run.placements).map((event) => [event.seq, event]))
  const all = [...events.values()]
  if (isAboutEngine(all)) return
  const died = placements.flatMap(({ event }) => events.get(event) ?? [])
  appendUnplaced(work, createDeadLetterEvent({ lane, deadRun, run, reason, died, all, at: work.now }))
}

/** Settles a run that accepted only part of its events. The accepted events end; the others continue under a new id (L8). */
function settlePartial(work: CommitContext, lane: Lane, run: RunState, call: Settlement): Lane {
  if (call.outcome.kind !== 'partial') return lane
  const { outcome } = call
  const placements = getRunPlacements(work, lane, run)
  const ids = new Map(work.tables.events.findPlaced(placements).map((event) => [event.seq, event.id]))
  const nameOf = (placement: PlacementRow): string => ids.get(placement.event) ?? ''
  const deadIds = new Set(outcome.dead)
  const retryIds = new Set(outcome.retry).difference(deadIds)
  const dead = placements.filter((placement) => deadIds.has(nameOf(placement)))
  const retry = placements.filter((placement) => retryIds.has(nameOf(placement)))
  if (dead.length + retry.length === 0) return finishRun(work, lane, run, { call, kind: 'done', reason: '' })

  const old = run.isDeadLetter ? work.tables.deadLetters.get(run.id) : undefined
  const accepted = placements.filter((placement) => !deadIds.has(nameOf(placement)) && !retryIds.has(nameOf(placement)))
  const kind = accepted.length > 0 ? 'partial' : 'dropped'
  recordRun(work, lane, run, { kind, reason: outcome.reason, placements: accepted })
  const failed = { ...failAttempt(run, call.attempt, work.now), parent: run.id }
  let next = old?.blocks === true ? unblockLane(lane, work) : lane
  if (dead.length > 0) {
    const { reason, block } = outcome
    const ofRun = { id: run.id, token: run.token, placements }
    const details = {
      call,
      reason,
      block,
      placements: dead,
      old: undefined,
      ofRun,
    }
    const id = work.drawRunId()
    next = putDeadLetter(work, next, { ...failed, id }, details)
    work.addLaneFeedEntry(lane, 'settled', 'dead', id)
  }
  if (retry.length === 0) {
    takeRunPlacements(work, lane, run)
    return endRun(next, call, work)
  }
  const rest: RunState = {
    ...failed,
    id: work.drawRunId(),
    events: retry.length,
    bytes: retry.reduce((sum, placement) => sum + placement.size, 0),
  }
  if (old !== undefined) {
    work.tables.deadLetters.remove(run.id)
    work.tables.deadLetters.put({ ...old, id: rest.id, parent: run.id, placements: retry })
    if (old.blocks) next = { ...next, blocks: next.blocks + 1 }
  } else {
    const gone = placements.filter((placement) => !retryIds.has(nameOf(placement))).map((placement) => placement.pos)
    work.tables.placements.remove(lane, run.rank, gone)
  }
  return scheduleNextAttempt(next, rest, addDelay(work.now, outcome.after), work)
}

/** `endPurgedRun` ends a run that was purged while it ran. Its remaining events return to the lane and are due now (L15). */
export function endPurgedRun(work: CommitContext, lane: Lane, run: RunState, end: RunEndOptions): Lane {
  recordRun(work, lane, run, { kind: 'purged', reason: '', placements: [] })
  if (run.isDeadLetter) return endRun(restoreDeadLetter(work, lane, run), end, work)
  if (run.events === 0) return endRun(lane, end, work)
  if (run.rank === 1) return endRun({ ...lane, replays: lane.replays + run.events }, end, work)
  // The remaining events wait again. Unlike a cancelled run, this run did happen, so the lane remembers its end.
  return { ...dissolveRun({ ...lane, hasRemaining: true }, run, end, work), ...rememberRunEnd(lane, end, work.now) }
}

/** `restoreDeadLetter` handles a dead letter that lost events while it ran: it is dead again with the rest, or it is removed. */
export function restoreDeadLetter(work: CommitContext, lane: Lane, run: RunState): Lane {
  const { deadLetters } = work.tables
  const deadLetter = deadLetters.get(run.id)
  if (deadLetter !== undefined && deadLetter.placements.length > 0) {
    deadLetters.put({ ...deadLetter, state: 'dead' })
    return lane
  }
  const freed = unblockIfBlockedBy(work, lane, run.id)
  deadLetters.remove(run.id)
  return freed
}
