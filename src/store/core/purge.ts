// `purge` removes everything that one lane, tenant or event holds. A live run keeps its lease, but not its events
// (L15).
import { isLiveRun, type Lane, type Rank, type RunState } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import { kinOf, withoutTexts, withdrawEvents } from '../../model/steer.ts'
import { endRun } from '../../model/settle.ts'
import type { PurgeCall, PurgeReply } from '../contract/index.ts'
import { hashBody } from './append.ts'
import { restoreDeadLetter, recordRun } from './settle.ts'
import { removeDeadLetter } from './steer.ts'
import type { EventRow, DeadLetterRow, PlacementRow, ReplyBody, RunRow } from './tables.ts'
import { parseRunNumber, type CommitContext } from './commit-context.ts'

const PURGE_END = { whileRunning: 'window', keep: 0 } as const

export function purge(work: CommitContext, call: PurgeCall): ReplyBody<PurgeReply> {
  const { what } = call
  if (what.kind === 'runs') return purgeRuns(work, what, call.n)
  const { found, emptyRuns, more } = findPurgeScope(work, what, call.n)
  const only = what.kind === 'lanes' ? new Set(what.ids) : undefined
  const isNeeded = createNeedCheck(work)
  // While another lane needs the body, the event leaves only the purged lanes.
  const needed = new Set(only && found.filter((event) => isNeeded(filterLanes(event, (lane) => !only.has(lane)))))
  const removals = found.map((event) =>
    needed.has(event) ? filterLanes(event, (lane) => only?.has(lane) === true) : event,
  )
  const events = found.filter(hasBytes).length
  const removed = removeFromLanes(work, removals)
  for (const event of found) {
    if (needed.has(event)) work.tables.events.doom(event.seq)
    else wipeEvent(work, event)
  }
  work.addFeedEntry({ kind: 'purged', flow: '', id: what.kind, detail: String(events), at: work.now })
  return { events, deadLetters: removed.deadLetters, runs: emptyRuns + removed.runs, more }
}

type RunsOfLane = Extract<PurgeCall['what'], { readonly kind: 'runs' }>

/**
 * Purges one page of the lane's run records, newest first. Runs that share attempts began one after the other, so the next page
 * begins with the older half of this one: no run is then far from its kin.
 */
function purgeRuns(work: CommitContext, { lane, of, before }: RunsOfLane, n: number): ReplyBody<PurgeReply> {
  const { runs, events } = work.tables
  const found = runs.findByLane(lane, n, before)
  let looked = 0
  const page = found.filter((run, at) => at < 2 || (looked += run.events.length) <= MAX_EVENTS_SCANNED)
  const seqs = new Set(events.filterByScope(uniqueEvents(page), of))
  if (seqs.size > 0) forgetTexts(work, lane, seqs, page)
  const removed = seqs.size === 0 ? 0 : removeFromRunRecords(work, seqs, page)
  const more = page.length < found.length || found.length === n
  const middle = page[Math.floor(page.length / 2)]
  const next = page.length < 2 ? page.at(-1) : middle
  const reply = { events: 0, deadLetters: 0, runs: removed, more }
  return next === undefined ? reply : { ...reply, before: parseRunNumber(next.id) }
}

function uniqueEvents(page: readonly RunRow[]): readonly number[] {
  return [...new Set(page.flatMap((run) => run.events))].toSorted((one, other) => one - other)
}

/** `purgeEvents` removes events that no lane needs any more: their bytes, their run records, and texts that may quote them. */
export function purgeEvents(work: CommitContext, events: readonly EventRow[]): void {
  removeFromLanes(work, events)
  for (const event of events) wipeEvent(work, event)
}

/** Removes the events from these lanes. Thousands of them may be in one lane, so each lane is processed once for all. */
function removeFromLanes(work: CommitContext, events: readonly EventLanes[]): { deadLetters: number; runs: number } {
  const counts = { deadLetters: 0, runs: 0 }
  const removals = events.flatMap(({ seq, lanes }) => lanes.map((lane) => ({ lane, seq })))
  for (const [lane, its] of Map.groupBy(removals, (one) => one.lane)) {
    const seqs = new Set(its.map(({ seq }) => seq))
    forgetTexts(work, lane, seqs, work.tables.runs.findByLane(lane, MAX_RUNS_SCANNED))
    counts.deadLetters += removeFromDeadLetters(work, lane, seqs)
    removeFromLane(work, lane, seqs)
    counts.runs += removeFromRunRecords(work, seqs, work.tables.runs.findByLane(lane, MAX_RUNS_SCANNED))
  }
  return counts
}

type EventLanes = Pick<EventRow, 'seq' | 'lanes'>

function filterLanes({ seq, lanes }: EventRow, isKept: (lane: LaneId) => boolean): EventLanes {
  return { seq, lanes: lanes.filter(isKept) }
}

function hasBytes({ purgedHash }: EventRow): boolean {
  return purgedHash === ''
}

/**
 * `createNeedCheck` returns a check whether some lane has not ended with an event yet. It reads the dead letters of a lane once,
 * so none may change while the check is in use.
 */
export function createNeedCheck(work: CommitContext): (event: EventLanes) => boolean {
  const { lanes, deadLetters, placements, unrouted } = work.tables
  const dead = new Map<LaneId, ReadonlySet<number>>()
  const isDead = (id: LaneId, seq: number): boolean => {
    const known = dead.get(id) ?? new Set(deadLetters.findEventSeqs(id))
    dead.set(id, known)
    return known.has(seq)
  }
  return ({ lanes: ids, seq }) =>
    ids.some((id) => {
      const lane = lanes.get(id)
      return (lane !== undefined && placements.findByEvent(lane, seq).length > 0) || isDead(id, seq)
    }) || unrouted.findByEvent(seq).length > 0
}

/** `wipeEvent` removes the bytes of an event. The identity stays known, with the hash of the body (L10). */
export function wipeEvent(work: CommitContext, event: EventRow): void {
  if (!hasBytes(event)) return
  for (const entry of work.tables.unrouted.findByEvent(event.seq)) work.tables.unrouted.remove(entry.id)
  work.tables.events.wipe(event.seq, hashBody(event.body))
}

/** Removes texts that may quote the events: errors of attempts and reasons of endings. */
function forgetTexts(work: CommitContext, id: LaneId, seqs: ReadonlySet<number>, records: readonly RunRow[]): void {
  const { lanes, deadLetters, placements, runs } = work.tables
  const lane = lanes.get(id)
  const run = lane?.run
  // No handler has seen superseded events, so their records quote nothing.
  const past = records.filter(({ kind }) => kind !== 'superseded')
  const dead = deadLetters.findByLane(id)
  const named = new Set([
    ...past.filter(({ events }) => events.some((seq) => seqs.has(seq))).map((one) => one.id),
    ...dead.filter((one) => one.placements.some(({ event }) => seqs.has(event))).map((one) => one.id),
  ])
  if (lane !== undefined && run !== undefined) {
    const held = [...seqs].flatMap((seq) => placements.findByEvent(lane, seq))
    if (held.some((one) => isInRun(run, one))) named.add(run.id)
  }
  const kin = kinOf([...past, ...dead, ...(run === undefined ? [] : [run])], named)
  const isKin = (one: { readonly id: string }): boolean => kin.has(one.id)
  for (const one of past.filter(isKin)) {
    const left = withoutTexts(one)
    if (left !== one) runs.put(left, false)
  }
  for (const one of dead.filter(isKin)) {
    const left = withoutTexts(one)
    if (left !== one) deadLetters.put(left)
  }
  if (lane === undefined || run === undefined || !isKin(run)) return
  const left = withoutTexts(run)
  if (left !== run) work.saveLane({ ...lane, run: left })
}

type HeldPlacement = ReturnType<CommitContext['tables']['placements']['findByEvent']>[number]

function isInRun(run: RunState, { rank, placement }: HeldPlacement): boolean {
  return !run.isDeadLetter && run.rank === rank && placement.pos <= run.upto
}

function removeFromLane(work: CommitContext, id: LaneId, seqs: ReadonlySet<number>): void {
  const lane = work.tables.lanes.get(id)
  if (lane === undefined) return
  const { placements } = work.tables
  const gone = [...seqs].flatMap((seq) => placements.findByEvent(lane, seq))
  if (gone.length === 0) return
  for (const rank of RANKS) {
    const positions = gone.flatMap((held) => (held.rank === rank ? held.placement.pos : []))
    if (positions.length > 0) placements.remove(lane, rank, positions)
  }
  const { run } = lane
  const isTaken = (held: HeldPlacement): boolean => run !== undefined && isInRun(run, held)
  const waited = gone.filter((held) => !isTaken(held))
  const live = waited.flatMap(({ rank, placement }) => (rank === 0 ? placement : []))
  const less = { waiting: live.length, bytes: sumSizes(live), replays: waited.length - live.length }
  const left = waited.length === 0 ? lane : withdrawEvents(lane, less, work)
  const taken = gone.filter(isTaken).map(({ placement }) => placement)
  work.saveLane(run === undefined || taken.length === 0 ? left : removeFromRun(work, left, run, taken))
}

const RANKS: readonly Rank[] = [0, 1]

function removeFromRun(work: CommitContext, lane: Lane, run: RunState, gone: readonly PlacementRow[]): Lane {
  const less = { ...run, events: run.events - gone.length, bytes: run.bytes - sumSizes(gone) }
  if (isLiveRun(run, work.now)) return { ...lane, run: { ...less, purged: true } }
  if (less.events > 0) return { ...lane, run: { ...less, id: work.drawRunId(), parent: run.id } }
  recordRun(work, lane, run, { kind: 'purged', reason: '', placements: [] })
  return endRun(lane, PURGE_END, work)
}

function sumSizes(placements: readonly PlacementRow[]): number {
  return placements.reduce((sum, placement) => sum + placement.size, 0)
}

function removeFromDeadLetters(work: CommitContext, lane: LaneId, seqs: ReadonlySet<number>): number {
  const hit = work.tables.deadLetters
    .findByLane(lane)
    .filter(({ placements }) => placements.some(({ event }) => seqs.has(event)))
  for (const deadLetter of hit) {
    const less = { ...deadLetter, placements: deadLetter.placements.filter((placement) => !seqs.has(placement.event)) }
    work.tables.deadLetters.put(less)
    if (deadLetter.state === 'running') interruptDeadLetterRun(work, less)
    else if (less.placements.length === 0) removeDeadLetter(work, less, 'purged')
  }
  return hit.length
}

/** Handles a dead letter that runs or waits for its next attempt. */
function interruptDeadLetterRun(work: CommitContext, deadLetter: DeadLetterRow): void {
  const lane = work.tables.lanes.get(deadLetter.lane)
  const run = lane?.run
  if (lane === undefined || run === undefined) return
  const less = { ...run, events: deadLetter.placements.length, bytes: sumSizes(deadLetter.placements) }
  if (isLiveRun(run, work.now)) work.saveLane({ ...lane, run: { ...less, purged: true } })
  else work.saveLane(endRun(restoreDeadLetter(work, lane, less), PURGE_END, work))
}

function removeFromRunRecords(work: CommitContext, seqs: ReadonlySet<number>, records: readonly RunRow[]): number {
  const { events: stored, runs } = work.tables
  const hit = records.filter((run) => run.events.some((event) => seqs.has(event)))
  for (const run of hit) {
    // An event that another lane shared may have lost its bytes before. A record with only such events is useless.
    const events = run.events.filter((event) => !seqs.has(event) && stored.hasBody(event))
    // The remaining record leads to its other events, in case they are purged next.
    if (events.length > 0) runs.put({ ...run, events }, false)
    else runs.remove(run.id)
  }
  return hit.length
}

const MAX_RUNS_SCANNED = 1_000
/** The most events of such runs in one call. */
const MAX_EVENTS_SCANNED = 5_000

interface FoundEvents {
  readonly found: readonly EventRow[]
  /** How many run records were removed because all their events were gone. */
  readonly emptyRuns: number
  readonly more: boolean
}

function findPurgeScope(work: CommitContext, what: Exclude<PurgeCall['what'], RunsOfLane>, n: number): FoundEvents {
  const { events } = work.tables
  switch (what.kind) {
    case 'lanes':
      return findEventsInLanes(work, what.ids, n)
    case 'tenant':
    case 'subject': {
      const found = events.findInScope(what, n)
      return { found, emptyRuns: 0, more: found.length === n }
    }
    case 'event': {
      // Retention may have removed the bytes; the records of the runs have an age of their own.
      const event = events.findById(what.id)
      return { found: event === undefined ? [] : [event], emptyRuns: 0, more: false }
    }
  }
}

/** Finds events that wait, run, are dead or are done in these lanes. */
function findEventsInLanes(work: CommitContext, ids: readonly LaneId[], n: number): FoundEvents {
  const { events, lanes, deadLetters, placements } = work.tables
  const seqs = new Set<number>()
  let [emptyRuns, isCut] = [0, false]
  for (const id of ids) {
    const lane = lanes.get(id)
    const waiting = lane === undefined ? [] : [...placements.findFirst(lane, 0, n), ...placements.findFirst(lane, 1, n)]
    const dead = deadLetters.findByLane(id).flatMap((deadLetter) => deadLetter.placements)
    for (const placement of [...waiting, ...dead]) seqs.add(placement.event)
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
