// upkeep: retention and the other chores, a bounded piece at a time (L3, L15, L23). Nothing that waits is ever removed.
import { NEVER } from '../../clock.ts'
import { steer } from '../../model/steer.ts'
import type { RetentionPolicy, UpkeepReply } from '../contract/index.ts'
import { expireEvents, UNSEEN_EVENTS, type OldEvents } from './expire-events.ts'
import { before, lookedAt, lookOn, oldIn, UNSEEN, type OldRows } from './old-rows.ts'
import { needs, wipe } from './purge.ts'
import { removeLetter } from './steer.ts'
import type { RunRow } from './tables.ts'
import { runNumber, type Work } from './work.ts'

const PIECE = 500
/** Of runs in one piece. */
const EVENTS_AT_ONCE = 5_000
const TICKETS_KEPT = 3_600_000
const DAY = 86_400_000
const REPLAYS_KEPT = 30 * DAY
const TURNS_KEPT = DAY

/** Where the looks at old rows stand. */
export interface Looked {
  readonly events: OldEvents
  readonly runs: OldRows
  /** Of those that are to go when their lanes are through with them; 0: from the first on. */
  readonly doomed: number
}

export const NOTHING_LOOKED_AT: Looked = { events: UNSEEN_EVENTS, runs: UNSEEN, doomed: 0 }

export interface Piece {
  readonly did: UpkeepReply['did']
  readonly more: boolean
  readonly after: Looked
}

export function upkeepPiece(work: Work, policy: RetentionPolicy, after: Looked): Piece {
  const lanes = forgetLanes(work) + hurryTenants(work, policy)
  const letters = expireLetters(work, policy)
  const events = expireEvents(work, policy, after.events, PIECE)
  const runs = expireRuns(work, policy, after.runs, events.after)
  const doomed = wipeDoomed(work, after.doomed)
  const tickets = forgetSmall(work)
  const turns = work.tables.lanes.forgetTurns(work.now - TURNS_KEPT, work.now, PIECE)
  const more =
    [lanes, letters, tickets, turns].some((count) => count >= PIECE) ||
    events.more ||
    runs.after.at > 0 ||
    doomed.after > 0
  return {
    did: { lanes, letters, runs: runs.gone, events: events.gone + doomed.gone },
    more,
    after: { events: events.after, runs: runs.after, doomed: doomed.after },
  }
}

function forgetLanes(work: Work): number {
  const stale = work.tables.lanes.stale(work.now, PIECE)
  for (const lane of stale) work.tables.lanes.remove(lane)
  return stale.length
}

/** A tenant with too many open windows gets its oldest ones run at once (L3). */
function hurryTenants(work: Work, policy: RetentionPolicy): number {
  let hurried = 0
  for (const [flow, most] of Object.entries(policy.lanesPerTenant)) {
    for (const lane of work.tables.lanes.beyond(flow, most, work.now)) {
      const next = steer(lane, { kind: 'run-now' }, work)
      if (next === undefined) continue
      work.save(next)
      work.due(flow)
      hurried++
    }
  }
  return hurried
}

function expireLetters(work: Work, policy: RetentionPolicy): number {
  const old = work.tables.letters.expirable(before(work.now, policy.letters), PIECE)
  for (const letter of old) removeLetter(work, letter, 'expired')
  return old.length
}

interface Expired {
  readonly gone: number
  readonly after: OldRows
}

function expireRuns(work: Work, policy: RetentionPolicy, looked: OldRows, events: OldRows): Expired {
  const from = lookOn(looked, work.now)
  const page = work.tables.runs.oldest(from.at, PIECE)
  const youngest = before(work.now, Math.min(NEVER, ...Object.values(policy.runs)))
  const old = oldIn(page, work.now, youngest, (run) => run.started)
  // Those whose events are still to be looked at wait for that: they would be left for long.
  const eventsUpTo = events.at > 0 ? events.upTo : Infinity
  const seen = page.slice(0, Math.min(old, atOnce(page, eventsUpTo)))
  const isOld = (run: RunRow): boolean =>
    run.ended <= before(work.now, policy.runs[run.flow] ?? policy.runs[''] ?? NEVER)
  // The record of a run is how a purge of its lane finds its events: it stays as long as one of them.
  const isLast = (run: RunRow): boolean => !run.events.some((event) => work.tables.events.hasBytes(event))
  const gone = seen.filter((run) => isOld(run) && isLast(run))
  for (const run of gone) work.tables.runs.remove(run.id)
  const lastSeen = seen.at(-1)
  const last = lastSeen === undefined ? from.at : runNumber(lastSeen.id)
  const isThrough = seen.length === old && (old < page.length || page.length < PIECE)
  return { gone: gone.length, after: lookedAt(from, work.now, { last, left: seen.length - gone.length, isThrough }) }
}

/** How many of them, before one with an event that is not looked at yet, or with so many that another piece is to have them. */
function atOnce(runs: readonly RunRow[], eventsUpTo: number): number {
  let events = 0
  const end = runs.findIndex((run, at) => {
    events += run.events.length
    return (at > 0 && events > EVENTS_AT_ONCE) || run.events.some((event) => event > eventsUpTo)
  })
  return end === -1 ? runs.length : end
}

/** All of them with each upkeep: those that are still needed may be many, and must not keep the others. */
function wipeDoomed(work: Work, from: number): { readonly gone: number; readonly after: number } {
  const page = work.tables.events.doomed(from, PIECE)
  const isNeeded = needs(work)
  const free = page.filter((event) => !isNeeded(event))
  for (const event of free) wipe(work, event)
  return { gone: free.length, after: page.length < PIECE ? 0 : (page.at(-1)?.seq ?? 0) }
}

function forgetSmall(work: Work): number {
  const { limits, small } = work.tables
  const old = limits.ticketsBefore(work.now - TICKETS_KEPT, PIECE)
  for (const row of old) limits.removeTicket(row.ticket)
  limits.forget(work.now)
  small.forgetProcesses(work.now - DAY)
  small.forgetReplays(work.now - REPLAYS_KEPT)
  return old.length
}
