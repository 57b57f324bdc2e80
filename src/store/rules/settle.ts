// settle: the holder of the live token says how its run ended (L1, L6, L6c, L8, L9).
import { later, NEVER } from '../../clock.ts'
import { isLive, type Lane, type Run } from '../../model/lane.ts'
import {
  dissolve,
  endRun,
  failedOnce,
  givenBack,
  mayDissolve,
  putOff,
  remembered,
  saidAgain,
  type LaneEnd,
} from '../../model/settle.ts'
import { unblock } from '../../model/steer.ts'
import type { Appended, RunRecord, Settle, Settled } from '../contract/index.ts'
import { appendPublished } from './append.ts'
import type { PlaceRow } from './tables.ts'
import type { Work } from './work.ts'

interface SettledWith {
  readonly settled: Settled
  /** What became of each event that it published. */
  readonly published: readonly Appended[]
}

export function settle(work: Work, call: Settle, routes: number): SettledWith {
  const lane = work.tables.lanes.get(call.lane)
  const run = lane?.run
  if (lane === undefined || run === undefined || run.token !== call.token || !isLive(run, work.now)) return LOST
  if (run.purged) {
    work.save(endPurged(work, lane, run, call))
    return PURGED
  }
  const next = outcomeOf(work, lane, run, call)
  work.save(next)
  const published = appendPublished(work, call.publish, routes)
  if (next.due < NEVER) work.due(lane.flow)
  work.noteOf(lane, 'settled', call.outcome.kind, run.id)
  return { settled: 'ok', published }
}

const LOST: SettledWith = { settled: 'lost', published: [] }
const PURGED: SettledWith = { settled: 'purged', published: [] }

function outcomeOf(work: Work, lane: Lane, run: Run, call: Settle): Lane {
  const outcome = call.outcome
  switch (outcome.kind) {
    case 'done':
    case 'dropped':
      return finish(work, lane, run, {
        call,
        kind: outcome.kind,
        reason: outcome.kind === 'done' ? '' : outcome.reason,
      })
    case 'retry':
      return putOff(lane, failedOnce(run, call.attempt, work.now), later(work.now, outcome.after), work)
    case 'again':
      return putOff(lane, saidAgain(run, outcome.state64, work.now), later(work.now, outcome.after), work)
    case 'released':
      return putOff(lane, givenBack(run, outcome.state64), later(work.now, outcome.after), work)
    case 'cancelled':
      if (!mayDissolve(run, work.now)) return putOff(lane, givenBack(run, run.state64), work.now, work)
      record(work, lane, run, { kind: 'cancelled', reason: '', places: placesOf(work, lane, run) })
      return dissolve(lane, run, call, work)
    case 'dead':
      return bury(work, lane, failedOnce(run, call.attempt, work.now), {
        call,
        reason: outcome.reason,
        block: outcome.block,
      })
    case 'partial':
      return accept(work, lane, run, call)
  }
}

/** The events of a run, wherever they are kept. */
export function placesOf(work: Work, lane: Lane, run: Run): readonly PlaceRow[] {
  return run.letter
    ? (work.tables.letters.get(run.id)?.places ?? [])
    : work.tables.places.upto(lane, run.rank, run.upto)
}

/** Takes the events of a run out of the lane for good. */
function takePlaces(work: Work, lane: Lane, run: Run): readonly PlaceRow[] {
  if (!run.letter) return work.tables.places.take(lane, run.rank, run.upto)
  const places = placesOf(work, lane, run)
  work.tables.letters.remove(run.id)
  return places
}

interface Ending {
  readonly call: Pick<Settle, 'whileRunning' | 'keep'>
  readonly kind: RunRecord['kind']
  readonly reason: string
}

/** The run is over and its events with it. */
export function finish(work: Work, lane: Lane, run: Run, ending: Ending): Lane {
  const freed = run.letter ? unblockFor(work, lane, run.id) : lane
  // Of a dead letter that runs again there is one already.
  record(work, lane, run, { ...ending, places: takePlaces(work, lane, run), isFirst: !run.letter })
  return endRun(freed, ending.call, work)
}

/** If that dead letter blocked the lane, it no longer does. */
export function unblockFor(work: Work, lane: Lane, letter: string): Lane {
  return work.tables.letters.get(letter)?.blocks === true ? unblock(lane, work) : lane
}

interface Recorded {
  readonly kind: RunRecord['kind']
  readonly reason: string
  readonly places: readonly PlaceRow[]
  readonly isFirst?: boolean
}

type RunFacts = Pick<Run, 'id' | 'parent' | 'started' | 'tries' | 'lapses' | 'attempts'>

export function record(work: Work, lane: Lane, run: RunFacts, what: Recorded): void {
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
    events: what.places.map((place) => place.event),
    attempts: run.attempts,
  }
  work.tables.runs.put(made, what.isFirst === true)
}

interface Burial {
  readonly call: Pick<Settle, 'whileRunning' | 'keep'>
  readonly reason: string
  readonly block: boolean
}

/** The run becomes a dead letter, or the one it came from again; the lane goes on, unless it has to wait for it (L9). */
export function bury(work: Work, lane: Lane, run: Run, burial: Burial): Lane {
  const letters = work.tables.letters
  const old = run.letter ? letters.get(run.id) : undefined
  const places = takePlaces(work, lane, run)
  record(work, lane, run, { kind: 'dead', reason: burial.reason, places })
  return endRun(putLetter(work, lane, run, { ...burial, places, old }), burial.call, work)
}

interface NewLetter extends Burial {
  readonly places: readonly PlaceRow[]
  readonly old: { readonly order: number; readonly blocks: boolean } | undefined
}

function putLetter(work: Work, lane: Lane, run: Run, letter: NewLetter): Lane {
  const blocked = letter.old?.blocks === true
  work.tables.letters.put({
    id: run.id,
    parent: run.parent,
    lane: lane.id,
    flow: lane.flow,
    key: lane.key,
    tenant: lane.tenant,
    group: lane.group,
    state: 'dead',
    reason: letter.reason,
    at: work.now,
    tries: run.tries,
    lapses: run.lapses,
    blocks: blocked || letter.block,
    attempts: run.attempts,
    order: letter.old?.order ?? work.draw(),
    places: letter.places,
  })
  return letter.block && !blocked ? { ...lane, blocks: lane.blocks + 1 } : lane
}

/** Some events were not accepted: the others end, these go on under a new id (L8). */
function accept(work: Work, lane: Lane, run: Run, call: Settle): Lane {
  if (call.outcome.kind !== 'partial') return lane
  const { outcome } = call
  const places = placesOf(work, lane, run)
  const ids = new Map(work.tables.events.at(places).map((event) => [event.seq, event.id]))
  const nameOf = (place: PlaceRow): string => ids.get(place.event) ?? ''
  const toBury = new Set(outcome.dead)
  const toRetry = new Set(outcome.retry).difference(toBury)
  const dead = places.filter((place) => toBury.has(nameOf(place)))
  const retry = places.filter((place) => toRetry.has(nameOf(place)))
  if (dead.length + retry.length === 0) return finish(work, lane, run, { call, kind: 'done', reason: '' })

  const old = run.letter ? work.tables.letters.get(run.id) : undefined
  const accepted = places.filter((place) => !toBury.has(nameOf(place)) && !toRetry.has(nameOf(place)))
  const kind = accepted.length > 0 ? 'partial' : 'dropped'
  record(work, lane, run, { kind, reason: outcome.reason, places: accepted })
  const failed = { ...failedOnce(run, call.attempt, work.now), parent: run.id }
  let next = old?.blocks === true ? unblock(lane, work) : lane
  if (dead.length > 0) {
    const burial = { call, reason: outcome.reason, block: outcome.block, places: dead, old: undefined }
    const id = work.runId()
    next = putLetter(work, next, { ...failed, id }, burial)
    work.noteOf(lane, 'settled', 'dead', id)
  }
  if (retry.length === 0) {
    takePlaces(work, lane, run)
    return endRun(next, call, work)
  }
  const rest: Run = {
    ...failed,
    id: work.runId(),
    events: retry.length,
    bytes: retry.reduce((sum, place) => sum + place.size, 0),
  }
  if (old !== undefined) {
    work.tables.letters.remove(run.id)
    work.tables.letters.put({ ...old, id: rest.id, parent: run.id, places: retry })
    if (old.blocks) next = { ...next, blocks: next.blocks + 1 }
  } else {
    const gone = places.filter((place) => !toRetry.has(nameOf(place))).map((place) => place.pos)
    work.tables.places.remove(lane, run.rank, gone)
  }
  return putOff(next, rest, later(work.now, outcome.after), work)
}

/** A run that was purged while it ran is over; what was left of its events is back, due now (L15). */
export function endPurged(work: Work, lane: Lane, run: Run, end: LaneEnd): Lane {
  record(work, lane, run, { kind: 'purged', reason: '', places: [] })
  if (run.letter) return endRun(backToDead(work, lane, run), end, work)
  if (run.events === 0) return endRun(lane, end, work)
  if (run.rank === 1) return endRun({ ...lane, replays: lane.replays + run.events }, end, work)
  // What is left of its events waits again, but unlike one that was cancelled it has run, and has ended.
  return { ...dissolve({ ...lane, left: true }, run, end, work), ...remembered(lane, end, work.now) }
}

/** A dead letter that lost events while it ran: dead again with what is left, or gone. */
export function backToDead(work: Work, lane: Lane, run: Run): Lane {
  const { letters } = work.tables
  const letter = letters.get(run.id)
  if (letter !== undefined && letter.places.length > 0) {
    letters.put({ ...letter, state: 'dead' })
    return lane
  }
  const freed = unblockFor(work, lane, run.id)
  letters.remove(run.id)
  return freed
}
