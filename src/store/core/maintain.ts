// `maintainBatch` does one bounded batch of maintenance, e.g. retention (L3, L15, L23). It never removes an event that waits.
import { NEVER } from '../../clock.ts'
import { steer } from '../../model/steer.ts'
import type { RetentionPolicy, MaintainReply } from '../contract/index.ts'
import {
  expireEvents,
  INITIAL_EVENT_CURSOR,
  type EventScanCursor,
  computeCutoff,
  advanceCursor,
  continueScan,
  countOldRows,
  INITIAL_CURSOR,
  type ScanCursor,
} from './expire-events.ts'
import { createNeedCheck, purgeEvents } from './purge.ts'
import { removeDeadLetter } from './steer.ts'
import type { RunRow } from './tables.ts'
import { parseRunNumber, type CommitContext } from './commit-context.ts'

const BATCH_SIZE = 500
/** The most events of runs in one batch. */
const MAX_EVENTS_PER_BATCH = 5_000
const TICKETS_KEPT = 3_600_000
const DAY = 86_400_000
/** Permits are kept this long after their end, so that they are still known if the clock is set back by less. */
const PERMITS_KEPT = 3_600_000
const REPLAYS_KEPT = 30 * DAY
const GROUP_TURNS_KEPT = DAY

/** `ScanCursors` holds the progress of the scans for old rows. */
export interface ScanCursors {
  readonly events: EventScanCursor
  readonly runs: ScanCursor
  /** The progress over doomed events, which are removed when no lane needs them; 0: start at the first. */
  readonly doomed: number
}

export const INITIAL_CURSORS: ScanCursors = { events: INITIAL_EVENT_CURSOR, runs: INITIAL_CURSOR, doomed: 0 }

export interface MaintenanceBatch {
  readonly counts: MaintainReply['counts']
  readonly more: boolean
  readonly cursors: ScanCursors
}

export function maintainBatch(work: CommitContext, policy: RetentionPolicy, after: ScanCursors): MaintenanceBatch {
  const lanes = removeStaleLanes(work) + enforceTenantLaneLimits(work, policy)
  const deadLetters = expireDeadLetters(work, policy)
  const events = expireEvents(work, policy, after.events, BATCH_SIZE)
  const runs = expireRuns(work, policy, after.runs, events.after)
  const doomed = wipeDoomedEvents(work, after.doomed)
  const tickets = removeStaleSmallRows(work)
  const turns = work.tables.lanes.forgetGroupTurns(work.now - GROUP_TURNS_KEPT, work.now, BATCH_SIZE)
  const more =
    [lanes, deadLetters, tickets, turns].some((count) => count >= BATCH_SIZE) ||
    events.more ||
    runs.after.at > 0 ||
    doomed.after > 0
  return {
    counts: { lanes, deadLetters, runs: runs.gone, events: events.gone + doomed.gone },
    more,
    cursors: { events: events.after, runs: runs.after, doomed: doomed.after },
  }
}

function removeStaleLanes(work: CommitContext): number {
  const stale = work.tables.lanes.findStale(work.now, BATCH_SIZE)
  for (const lane of stale) work.tables.lanes.remove(lane)
  return stale.length
}

/** Makes the oldest windows of a tenant with too many open windows due at once (L3). */
function enforceTenantLaneLimits(work: CommitContext, policy: RetentionPolicy): number {
  let hurried = 0
  for (const [flow, most] of Object.entries(policy.lanesPerTenant)) {
    for (const lane of work.tables.lanes.findOverTenantLimit(flow, most, work.now)) {
      const next = steer(lane, { kind: 'run-now' }, work)
      if (next === undefined) continue
      work.saveLane(next)
      work.markDue(flow)
      hurried++
    }
  }
  return hurried
}

function expireDeadLetters(work: CommitContext, policy: RetentionPolicy): number {
  const old = work.tables.deadLetters.findExpirable(computeCutoff(work.now, policy.deadLetters), BATCH_SIZE)
  for (const deadLetter of old) removeDeadLetter(work, deadLetter, 'expired')
  return old.length
}

interface RunExpiryResult {
  readonly gone: number
  readonly after: ScanCursor
}

function expireRuns(
  work: CommitContext,
  policy: RetentionPolicy,
  looked: ScanCursor,
  events: ScanCursor,
): RunExpiryResult {
  const from = continueScan(looked, work.now)
  const page = work.tables.runs.findOldest(from.at, BATCH_SIZE)
  const youngest = computeCutoff(work.now, Math.min(NEVER, ...Object.values(policy.runs)))
  const old = countOldRows(page, work.now, youngest, (run) => run.started)
  // Runs whose events have not been scanned yet wait for that scan. Otherwise the run scan would leave them for long.
  const eventsUpTo = events.at > 0 ? events.upTo : Infinity
  const seen = page.slice(0, Math.min(old, countRunsInBatch(page, eventsUpTo)))
  const isOld = (run: RunRow): boolean =>
    run.ended <= computeCutoff(work.now, policy.runs[run.flow] ?? policy.runs[''] ?? NEVER)
  // A purge of a lane finds its events by the run records, so a record stays as long as one of its events.
  const isLast = (run: RunRow): boolean => !run.events.some((event) => work.tables.events.hasBody(event))
  const gone = seen.filter((run) => isOld(run) && isLast(run))
  for (const run of gone) work.tables.runs.remove(run.id)
  const lastSeen = seen.at(-1)
  const last = lastSeen === undefined ? from.at : parseRunNumber(lastSeen.id)
  const isThrough = seen.length === old && (old < page.length || page.length < BATCH_SIZE)
  return {
    gone: gone.length,
    after: advanceCursor(from, work.now, { last, left: seen.length - gone.length, isThrough }),
  }
}

/** Counts the runs before one with an event that was not scanned yet, or before the batch has too many events. */
function countRunsInBatch(runs: readonly RunRow[], eventsUpTo: number): number {
  let events = 0
  const end = runs.findIndex((run, at) => {
    events += run.events.length
    return (at > 0 && events > MAX_EVENTS_PER_BATCH) || run.events.some((event) => event > eventsUpTo)
  })
  return end === -1 ? runs.length : end
}

/** Visits all doomed events with each maintenance. Many of them may still be needed, and they must not hide the others. */
function wipeDoomedEvents(work: CommitContext, from: number): { readonly gone: number; readonly after: number } {
  const page = work.tables.events.findDoomed(from, BATCH_SIZE)
  const isNeeded = createNeedCheck(work)
  const free = page.filter((event) => !isNeeded(event))
  purgeEvents(work, free)
  return { gone: free.length, after: page.length < BATCH_SIZE ? 0 : (page.at(-1)?.seq ?? 0) }
}

function removeStaleSmallRows(work: CommitContext): number {
  const { limits, small } = work.tables
  const old = limits.findTicketsBefore(work.now - TICKETS_KEPT, BATCH_SIZE)
  for (const row of old) limits.removeTicket(row.ticket)
  limits.forgetIdle(work.now)
  small.forgetProcesses(work.now - DAY)
  small.forgetPermits(work.now - PERMITS_KEPT)
  small.forgetReplays(work.now - REPLAYS_KEPT)
  return old.length
}
