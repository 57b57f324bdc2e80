// steer: a person acts on lanes, dead letters, marks and flows, one item at a time, each atomic by itself (L9, L14).
import { later } from '../../clock.ts'
import { isLive, type Lane } from '../../model/lane.ts'
import { queueLetter, steer as steered, unblock, unqueueLetter, withdraw } from '../../model/steer.ts'
import type { LaneSteer, RunRecord, SteerCall, SteerReply } from '../contract/index.ts'
import { finish, record, unblockFor } from './settle.ts'
import type { LetterRow, PlaceRow } from './tables.ts'
import type { Work } from './work.ts'

type Steered = SteerReply['results'][number]

export function steer(work: Work, call: SteerCall): readonly Steered[] {
  switch (call.what) {
    case 'lanes':
      return call.ids.map((id) => steerLane(work, work.tables.lanes.get(id), call.act))
    case 'dead':
      return call.ids.map((id) => steerLetter(work, work.tables.letters.get(id), call.act))
    case 'marks':
      return call.ids.map((id) => steerMark(work, id, call.act))
    case 'flows':
      return call.ids.map((flow) => {
        const paused = work.tables.small.pauseOf(flow) !== undefined
        if (paused === (call.act.kind === 'pause')) return 'already'
        const { act } = call
        work.tables.small.putPause(
          flow,
          act.kind === 'pause' ? { reason: act.reason, by: act.by, since: work.now } : undefined,
        )
        work.due(flow)
        work.note({ kind: 'steered', flow, id: flow, detail: act.kind })
        return 'ok'
      })
  }
}

function steerLane(work: Work, lane: Lane | undefined, act: LaneSteer): Steered {
  if (lane === undefined) return 'missing'
  const live = lane.run !== undefined && isLive(lane.run, work.now)
  if (act.kind === 'drop') return dropLane(work, lane, live)
  if (act.kind === 'run-now' && live) return 'running'
  if (act.kind === 'cancel' && !live) return 'missing'
  const next = steered(
    lane,
    act.kind === 'hold'
      ? { kind: 'hold', hold: { reason: act.reason, by: act.by, until: later(work.now, act.for) } }
      : { kind: act.kind },
    work,
  )
  if (next === undefined) return 'already'
  work.save(next)
  work.due(lane.flow)
  if (act.kind === 'cancel' && next.run !== undefined) {
    work.hint({ kind: 'cancel', lane: lane.id, token: next.run.token })
  }
  work.noteOf(lane, 'steered', act.kind)
  return 'ok'
}

/** Everything that waits, and a run between attempts, ends as dropped. */
function dropLane(work: Work, lane: Lane, live: boolean): Steered {
  let next = lane
  if (lane.run !== undefined && !live) {
    const call = { whileRunning: 'window', keep: 0 } as const
    next = finish(work, lane, lane.run, { call, kind: 'dropped', reason: 'by hand' })
  }
  const waiting = emptied(work, next, 0)
  const replays = emptied(work, next, 1)
  if (next === lane && waiting.length + replays.length === 0) return live ? 'running' : 'already'
  recordLost(work, next, [...waiting, ...replays], 'dropped')
  const bytes = waiting.reduce((sum, place) => sum + place.size, 0)
  work.save(withdraw(next, { waiting: waiting.length, replays: replays.length, bytes }, work))
  work.noteOf(lane, 'steered', 'drop')
  return 'ok'
}

/** Takes out what waits in a lane, without what its run holds. */
function emptied(work: Work, lane: Lane, rank: 0 | 1): readonly PlaceRow[] {
  const count = rank === 0 ? lane.waiting : lane.replays
  if (count === 0) return []
  const { places } = work.tables
  const held = lane.run !== undefined && !lane.run.letter && lane.run.rank === rank ? lane.run.upto : 0
  const gone = places.upto(lane, rank, lane.tail).filter((place) => place.pos > held)
  places.remove(
    lane,
    rank,
    gone.map((place) => place.pos),
  )
  return gone
}

/** Events that ended without ever running leave a record too. */
function recordLost(work: Work, lane: Lane, places: readonly PlaceRow[], kind: RunRecord['kind']): void {
  if (places.length === 0) return
  const run = { id: work.runId(), parent: '', started: work.now, tries: 0, lapses: 0, attempts: [] }
  record(work, lane, run, { kind, reason: 'by hand', places })
}

function steerLetter(work: Work, letter: LetterRow | undefined, act: 'retry' | 'drop' | 'unblock'): Steered {
  if (letter === undefined) return 'missing'
  if (act === 'unblock') return letFree(work, letter)
  if (act === 'drop') {
    if (letter.state === 'running') return 'running'
    removeLetter(work, letter, 'dropped')
    return 'ok'
  }
  if (letter.state !== 'dead') return 'already'
  work.tables.letters.put({ ...letter, state: 'queued' })
  const lane = laneOf(work, letter)
  work.save(queueLetter(lane, work))
  work.due(letter.flow)
  work.noteOf(lane, 'steered', 'retry', letter.id)
  return 'ok'
}

/** The lane may be gone: a dead letter does not keep it. */
function laneOf(work: Work, letter: LetterRow): Lane {
  const { lane: id, flow, key, tenant, group } = letter
  return work.lane({ id, flow, key, tenant, group })
}

function letFree(work: Work, letter: LetterRow): Steered {
  if (!letter.blocks) return 'already'
  work.tables.letters.put({ ...letter, blocks: false })
  const lane = laneOf(work, letter)
  work.save(unblock(lane, work))
  work.due(letter.flow)
  work.noteOf(lane, 'steered', 'unblock', letter.id)
  return 'ok'
}

/** The letter ends; if its lane waited for it, that goes on. */
export function removeLetter(work: Work, letter: LetterRow, kind: 'dropped' | 'purged' | 'expired'): void {
  const freed = unblockFor(work, laneOf(work, letter), letter.id)
  const lane = letter.state === 'queued' ? unqueueLetter(freed, work) : freed
  if (kind === 'dropped') {
    const run = { ...letter, started: letter.at }
    record(work, lane, run, { kind, reason: letter.reason, places: letter.places })
  }
  work.tables.letters.remove(letter.id)
  work.save(lane)
  work.due(letter.flow)
  work.noteOf(lane, 'steered', kind, letter.id)
}

function steerMark(work: Work, id: number, act: 'retry' | 'drop'): Steered {
  const { marks } = work.tables
  const mark = marks.get(id)
  if (mark === undefined) return 'missing'
  if (act === 'drop') marks.remove(id)
  else marks.put({ ...mark, due: work.now, token: 0 })
  return 'ok'
}
