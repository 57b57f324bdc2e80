// purge: what one lane, tenant or event holds goes at once; a live run keeps its lease, not its events (L15).
import { isLive, type Lane, type Rank, type Run } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import { endRun } from '../../model/settle.ts'
import { withdraw } from '../../model/steer.ts'
import type { PurgeCall } from '../contract/index.ts'
import { hashOf } from './append.ts'
import { backToDead, record } from './settle.ts'
import { removeLetter } from './steer.ts'
import type { EventRow, LetterRow, PlaceRow } from './tables.ts'
import { RUNS_LOOKED_AT, toPurge } from './to-purge.ts'
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
  const { found, emptyRuns, more } = toPurge(work, call)
  const purgedLanes = what.kind === 'lanes' ? new Set(what.ids) : undefined
  const counts = { events: found.length, letters: 0, runs: emptyRuns }
  // Thousands may wait in one lane: it is gone through once for all of them.
  for (const [lane, its] of Map.groupBy(leavings(found, purgedLanes), (one) => one.lane)) {
    const seqs = new Set(its.map(({ seq }) => seq))
    counts.letters += leaveLetters(work, lane, seqs)
    leaveLane(work, lane, seqs)
    counts.runs += forgetRuns(work, lane, seqs)
  }
  const isNeeded = needs(work)
  for (const event of found) {
    // A body that another lane still needs goes when that lane is through with it.
    if (purgedLanes !== undefined && isNeeded(outside(event, purgedLanes))) work.tables.events.doom(event.seq)
    else wipe(work, event)
  }
  work.note({ kind: 'purged', flow: '', id: what.kind, detail: String(counts.events) })
  return { ...counts, more }
}

/** Which event leaves which lane. `only`: no others. */
function leavings(found: readonly EventRow[], only: ReadonlySet<LaneId> | undefined): readonly Leaving[] {
  return found.flatMap(({ seq, lanes }) =>
    lanes.flatMap((lane) => (only === undefined || only.has(lane) ? { lane, seq } : [])),
  )
}

interface Leaving {
  readonly lane: LaneId
  readonly seq: number
}

/** Those lanes have ended with it. */
function outside({ seq, lanes }: EventRow, ended: ReadonlySet<LaneId>): Pick<EventRow, 'seq' | 'lanes'> {
  return { seq, lanes: lanes.filter((lane) => !ended.has(lane)) }
}

/** Whether some lane has not ended with an event yet. However many are asked about, a lane's letters are read once: none may change meanwhile. */
export function needs(work: Work): (event: Pick<EventRow, 'seq' | 'lanes'>) => boolean {
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

/** The bytes go; the identity stays known, with what they hashed to (L10). */
export function wipe(work: Work, event: EventRow): void {
  for (const mark of work.tables.marks.ofEvent(event.seq)) work.tables.marks.remove(mark.id)
  work.tables.events.wipe(event.seq, hashOf(event.body))
}

function leaveLane(work: Work, id: LaneId, seqs: ReadonlySet<number>): void {
  const lane = work.tables.lanes.get(id)
  if (lane === undefined) return
  const { places } = work.tables
  const gone = [...seqs].flatMap((seq) => places.of(lane, seq))
  if (gone.length === 0) return
  for (const rank of RANKS) {
    const positions = gone.flatMap((held) => (held.rank === rank ? held.place.pos : []))
    if (positions.length > 0) places.remove(lane, rank, positions)
  }
  const { run } = lane
  const isInRun = ({ rank, place }: (typeof gone)[number]): boolean =>
    run !== undefined && !run.letter && run.rank === rank && place.pos <= run.upto
  const waited = gone.filter((held) => !isInRun(held))
  const live = waited.flatMap(({ rank, place }) => (rank === 0 ? place : []))
  const less = { waiting: live.length, bytes: sizeOf(live), replays: waited.length - live.length }
  const left = waited.length === 0 ? lane : withdraw(lane, less, work)
  const taken = gone.filter(isInRun).map(({ place }) => place)
  work.save(run === undefined || taken.length === 0 ? left : leaveRun(work, left, run, taken))
}

const RANKS: readonly Rank[] = [0, 1]

function leaveRun(work: Work, lane: Lane, run: Run, gone: readonly PlaceRow[]): Lane {
  const less = { ...run, events: run.events - gone.length, bytes: run.bytes - sizeOf(gone) }
  if (isLive(run, work.now)) return { ...lane, run: { ...less, purged: true } }
  if (less.events > 0) return { ...lane, run: { ...less, id: work.runId(), parent: run.id } }
  record(work, lane, run, { kind: 'purged', reason: '', places: [] })
  return endRun(lane, END, work)
}

function sizeOf(places: readonly PlaceRow[]): number {
  return places.reduce((sum, place) => sum + place.size, 0)
}

function leaveLetters(work: Work, lane: LaneId, seqs: ReadonlySet<number>): number {
  const hit = work.tables.letters.ofLane(lane).filter(({ places }) => places.some(({ event }) => seqs.has(event)))
  for (const letter of hit) {
    const less = { ...letter, places: letter.places.filter((place) => !seqs.has(place.event)) }
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
  const less = { ...run, events: letter.places.length, bytes: sizeOf(letter.places) }
  if (isLive(run, work.now)) work.save({ ...lane, run: { ...less, purged: true } })
  else work.save(endRun(backToDead(work, lane, less), END, work))
}

function forgetRuns(work: Work, lane: LaneId, seqs: ReadonlySet<number>): number {
  const { runs } = work.tables
  const hit = runs.ofLane(lane, RUNS_LOOKED_AT).filter((run) => run.events.some((event) => seqs.has(event)))
  for (const run of hit) {
    const events = run.events.filter((event) => !seqs.has(event))
    // What is left of it leads to its other events, should they be next.
    if (events.length > 0) runs.put({ ...run, events }, false)
    else runs.remove(run.id)
  }
  return hit.length
}
