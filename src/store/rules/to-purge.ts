// What a purge is about: the events of a lane, wherever they are or were, of a tenant, or one by its id (L15).
import type { LaneId } from '../../model/identity.ts'
import type { PurgeCall } from '../contract/index.ts'
import type { EventRow } from './tables.ts'
import type { Work } from './work.ts'

export const RUNS_LOOKED_AT = 1_000
/** Of these runs, in one call. */
const EVENTS_LOOKED_AT = 5_000

export interface ToPurge {
  readonly found: readonly EventRow[]
  /** Records of runs that led to nothing any more, and went. */
  readonly emptyRuns: number
  readonly more: boolean
}

export function toPurge(work: Work, { what, n }: PurgeCall): ToPurge {
  return what.kind === 'lanes' ? inLanes(work, what.ids, n) : wholeEvents(work, what, n)
}

function wholeEvents(work: Work, what: Exclude<PurgeCall['what'], { kind: 'lanes' }>, n: number): ToPurge {
  const { events } = work.tables
  const event = what.kind === 'event' ? events.byId(what.id) : undefined
  const one = event === undefined || event.purgedHash !== '' ? [] : [event]
  const found = what.kind === 'tenant' ? events.ofTenant(what.tenant, n) : one
  return { found, emptyRuns: 0, more: found.length === n }
}

/** Events that wait, run, are dead or were done in these lanes. */
function inLanes(work: Work, ids: readonly LaneId[], n: number): ToPurge {
  const { events, lanes, letters, places } = work.tables
  const seqs = new Set<number>()
  let [emptyRuns, isCut] = [0, false]
  for (const id of ids) {
    const lane = lanes.get(id)
    const waiting = lane === undefined ? [] : [...places.first(lane, 0, n), ...places.first(lane, 1, n)]
    const dead = letters.ofLane(id).flatMap((letter) => letter.places)
    for (const place of [...waiting, ...dead]) seqs.add(place.event)
    const past = lookAtRuns(work, id, n)
    for (const seq of past.seqs) seqs.add(seq)
    emptyRuns += past.empty
    isCut ||= past.isCut
  }
  const left = seqs.values().filter((seq) => events.hasBytes(seq))
  const found = [...left.take(n)].flatMap((seq) => events.bySeq(seq) ?? [])
  return { found, emptyRuns, more: isCut || found.length === n }
}

/** The newest runs of a lane. Those whose events are all gone go as well: they would hide the older ones for good. */
function lookAtRuns(work: Work, id: LaneId, n: number): { seqs: Set<number>; empty: number; isCut: boolean } {
  const { events, runs } = work.tables
  const page = runs.ofLane(id, RUNS_LOOKED_AT)
  const seqs = new Set<number>()
  let [looked, empty] = [0, 0]
  for (const run of page) {
    if (seqs.size >= n || looked > EVENTS_LOOKED_AT) return { seqs, empty, isCut: true }
    looked += run.events.length
    const left = run.events.values().filter((seq) => events.hasBytes(seq))
    const some = [...left.take(n)]
    for (const seq of some) seqs.add(seq)
    if (some.length > 0) continue
    runs.remove(run.id)
    empty++
  }
  return { seqs, empty, isCut: page.length === RUNS_LOOKED_AT }
}
