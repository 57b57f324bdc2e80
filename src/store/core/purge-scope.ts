// `findPurgeScope` finds the events that a purge removes: those of a lane in every state, of a tenant, or one event
// by its id (L15).
import type { LaneId } from '../../model/identity.ts'
import type { PurgeCall } from '../contract/index.ts'
import type { EventRow } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

export const MAX_RUNS_SCANNED = 1_000
/** The most events of such runs in one call. */
const MAX_EVENTS_SCANNED = 5_000

export interface PurgeScope {
  readonly found: readonly EventRow[]
  /** How many run records were removed because all their events were gone. */
  readonly emptyRuns: number
  readonly more: boolean
}

export function findPurgeScope(work: CommitContext, { what, n }: PurgeCall): PurgeScope {
  return what.kind === 'lanes' ? findEventsInLanes(work, what.ids, n) : findWholeEvents(work, what, n)
}

function findWholeEvents(
  work: CommitContext,
  what: Exclude<PurgeCall['what'], { kind: 'lanes' }>,
  n: number,
): PurgeScope {
  const { events } = work.tables
  const event = what.kind === 'event' ? events.findById(what.id) : undefined
  const one = event === undefined || event.purgedHash !== '' ? [] : [event]
  const found = what.kind === 'tenant' ? events.findByTenant(what.tenant, n) : one
  return { found, emptyRuns: 0, more: found.length === n }
}

/** Finds events that wait, run, are dead or are done in these lanes. */
function findEventsInLanes(work: CommitContext, ids: readonly LaneId[], n: number): PurgeScope {
  const { events, lanes, deadLetters, placements } = work.tables
  const seqs = new Set<number>()
  let [emptyRuns, isCut] = [0, false]
  for (const id of ids) {
    const lane = lanes.get(id)
    const waiting = lane === undefined ? [] : [...placements.findFirst(lane, 0, n), ...placements.findFirst(lane, 1, n)]
    const dead = deadLetters.findByLane(id).flatMap((deadLetter) => deadLetter.placements)
    for (const place of [...waiting, ...dead]) seqs.add(place.event)
    const past = scanRuns(work, id, n)
    for (const seq of past.seqs) seqs.add(seq)
    emptyRuns += past.empty
    isCut ||= past.isCut
  }
  const left = seqs.values().filter((seq) => events.hasBody(seq))
  const found = [...left.take(n)].flatMap((seq) => events.findBySeq(seq) ?? [])
  return { found, emptyRuns, more: isCut || found.length === n }
}

/** Scans the newest runs of a lane. It removes runs whose events are all gone, because they would hide older runs forever. */
function scanRuns(work: CommitContext, id: LaneId, n: number): { seqs: Set<number>; empty: number; isCut: boolean } {
  const { events, runs } = work.tables
  const page = runs.findByLane(id, MAX_RUNS_SCANNED)
  const seqs = new Set<number>()
  let [looked, empty] = [0, 0]
  for (const run of page) {
    if (seqs.size >= n || looked > MAX_EVENTS_SCANNED) return { seqs, empty, isCut: true }
    looked += run.events.length
    const left = run.events.values().filter((seq) => events.hasBody(seq))
    const some = [...left.take(n)]
    for (const seq of some) seqs.add(seq)
    if (some.length > 0) continue
    runs.remove(run.id)
    empty++
  }
  return { seqs, empty, isCut: page.length === MAX_RUNS_SCANNED }
}
