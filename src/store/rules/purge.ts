// purge: what one lane, tenant or event holds goes at once; a live run keeps its lease, not its events (L15).
import { isLive, type Lane, type Rank } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import { endRun } from '../../model/settle.ts'
import { withdraw } from '../../model/steer.ts'
import type { PurgeCall } from '../contract/index.ts'
import { hashOf } from './append.ts'
import { backToDead, record } from './settle.ts'
import { removeLetter } from './steer.ts'
import type { EventRow, LetterRow, PlaceRow } from './tables.ts'
import type { Work } from './work.ts'

export interface Purged {
  readonly events: number
  readonly letters: number
  readonly runs: number
  readonly more: boolean
}

const END = { whileRunning: 'window', keep: 0 } as const

export function purge(work: Work, call: PurgeCall): Purged {
  const { what } = call
  const looked = what.kind === 'lanes' ? inLanes(work, what.ids, call.n) : wholeEvents(work, what, call.n)
  const { found } = looked
  const counts = { events: 0, letters: 0, runs: looked.emptyRuns }
  for (const event of found) {
    const lanes = what.kind === 'lanes' ? event.lanes.filter((lane) => what.ids.includes(lane)) : event.lanes
    for (const lane of lanes) {
      counts.letters += leaveLetters(work, lane, event.seq)
      leaveLane(work, lane, event.seq)
      counts.runs += forgetRuns(work, lane, event.seq)
    }
    // A body that another lane still needs goes when that lane is through with it.
    if (what.kind === 'lanes' && needs(work)(event)) work.tables.events.doom(event.seq)
    else wipe(work, event)
    counts.events++
  }
  work.note({ kind: 'purged', flow: '', id: what.kind, detail: String(counts.events) })
  return { ...counts, more: looked.more }
}

interface Looked {
  readonly found: readonly EventRow[]
  /** Records of runs that led to nothing any more, and went. */
  readonly emptyRuns: number
  readonly more: boolean
}

function wholeEvents(work: Work, what: Exclude<PurgeCall['what'], { kind: 'lanes' }>, n: number): Looked {
  const { events } = work.tables
  const event = what.kind === 'event' ? events.byId(what.id) : undefined
  const one = event === undefined || event.purgedHash !== '' ? [] : [event]
  const found = what.kind === 'tenant' ? events.ofTenant(what.tenant, n) : one
  return { found, emptyRuns: 0, more: found.length === n }
}

/** Events that wait, run, are dead or were done in these lanes. */
function inLanes(work: Work, ids: readonly LaneId[], n: number): Looked {
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
  const found = [...seqs]
    .filter((seq) => events.hasBytes(seq))
    .slice(0, n)
    .flatMap((seq) => events.bySeq(seq) ?? [])
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
    const some = left.take(n).toArray()
    for (const seq of some) seqs.add(seq)
    if (some.length > 0) continue
    runs.remove(run.id)
    empty++
  }
  return { seqs, empty, isCut: page.length === RUNS_LOOKED_AT }
}

/** Whether some lane has not ended with an event yet. However many are asked about, a lane's letters are read once: none may change meanwhile. */
export function needs(work: Work): (event: EventRow) => boolean {
  const { lanes, letters, places, marks } = work.tables
  const dead = new Map<LaneId, ReadonlySet<number>>()
  const isDead = (id: LaneId, seq: number): boolean => {
    const known = dead.get(id) ?? new Set(letters.eventsOf(id))
    dead.set(id, known)
    return known.has(seq)
  }
  return ({ lanes: ids, seq }) =>
    ids.some((id) => {
      const lane = lanes.get(id)
      return (lane !== undefined && places.of(lane, seq).length > 0) || isDead(id, seq)
    }) || marks.ofEvent(seq).length > 0
}

function holds(letter: LetterRow, seq: number): boolean {
  return letter.places.some((place) => place.event === seq)
}

/** The bytes go; the identity stays known, with what they hashed to (L10). */
export function wipe(work: Work, event: EventRow): void {
  for (const mark of work.tables.marks.ofEvent(event.seq)) work.tables.marks.remove(mark.id)
  work.tables.events.wipe(event.seq, hashOf(event.body))
}

function leaveLane(work: Work, id: LaneId, seq: number): void {
  const first = work.tables.lanes.get(id)
  if (first === undefined) return
  let lane = first
  for (const { rank, place } of work.tables.places.of(lane, seq)) lane = leavePlace(work, lane, rank, place)
  if (lane !== first) work.save(lane)
}

function leavePlace(work: Work, lane: Lane, rank: Rank, place: PlaceRow): Lane {
  work.tables.places.remove(lane, rank, [place.pos])
  const run = lane.run
  const inRun = run !== undefined && !run.letter && run.rank === rank && place.pos <= run.upto
  if (!inRun) {
    const live = rank === 0
    return withdraw(lane, { waiting: live ? 1 : 0, bytes: live ? place.size : 0, replays: live ? 0 : 1 }, work)
  }
  const less = { ...run, events: run.events - 1, bytes: run.bytes - place.size }
  if (isLive(run, work.now)) return { ...lane, run: { ...less, purged: true } }
  if (less.events > 0) return { ...lane, run: { ...less, id: work.runId(), parent: run.id } }
  record(work, lane, run, { kind: 'purged', reason: '', places: [] })
  return endRun(lane, END, work)
}

function leaveLetters(work: Work, lane: LaneId, seq: number): number {
  const hit = work.tables.letters.ofLane(lane).filter((letter) => holds(letter, seq))
  for (const letter of hit) {
    const less = { ...letter, places: letter.places.filter((place) => place.event !== seq) }
    work.tables.letters.put(less)
    if (letter.state === 'running') interrupt(work, less)
    else if (less.places.length === 0) removeLetter(work, less, 'purged')
  }
  return hit.length
}

/** The letter runs, or waits for its next attempt. */
function interrupt(work: Work, letter: LetterRow): void {
  const lane = work.tables.lanes.get(letter.lane)
  const run = lane?.run
  if (lane === undefined || run === undefined) return
  const bytes = letter.places.reduce((sum, place) => sum + place.size, 0)
  const less = { ...run, events: letter.places.length, bytes }
  if (isLive(run, work.now)) work.save({ ...lane, run: { ...less, purged: true } })
  else work.save(endRun(backToDead(work, lane, less), END, work))
}

function forgetRuns(work: Work, lane: LaneId, seq: number): number {
  const { runs } = work.tables
  const hit = runs.ofLane(lane, RUNS_LOOKED_AT).filter((run) => run.events.includes(seq))
  for (const run of hit) {
    const events = run.events.filter((event) => event !== seq)
    // What is left of it leads to its other events, should they be next.
    if (events.length > 0) runs.put({ ...run, events }, false)
    else runs.remove(run.id)
  }
  return hit.length
}

const RUNS_LOOKED_AT = 1_000
/** Of these runs, in one call. */
const EVENTS_LOOKED_AT = 5_000
