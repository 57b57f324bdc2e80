// How an attempt ends in the reference model, and how a lease is extended (L1, L6c, L8, L9, L15).
import { addDelay } from '../../../src/clock.ts'
import type { RunOutcome } from '../../../src/model/settle.ts'
import type {
  AppendResult,
  EventToStore,
  RenewCall,
  RenewReply,
  Settlement,
  SettleResult,
} from '../../../src/store/contract/index.ts'
import { blankRun, buryRun, endPurgedDeadLetter } from './claim.ts'
import { ANY_ERROR, store } from './place.ts'
import { canBeCancelled, isLive, liveSpots, runEnded, setDeadline } from './state.ts'
import type { Model, ModelLane, ModelRun } from './state.ts'

/** The run with this token, while it is live. */
function holder(model: Model, lane: string, token: number): { lane: ModelLane; run: ModelRun } | undefined {
  const found = model.lanes.get(lane)
  const run = found?.run
  if (found === undefined || run === undefined || run.token !== token || !isLive(run, model.now)) return undefined
  return { lane: found, run }
}

export interface ModelSettled {
  readonly settled: SettleResult
  readonly published: readonly AppendResult[]
}

export function settle(model: Model, call: Settlement, routes: number): ModelSettled {
  const held = holder(model, call.lane, call.token)
  if (held === undefined) return { settled: 'lost', published: [] }
  const { lane, run } = held
  if (run.purged) {
    endPurgedDeadLetter(lane, run)
    runEnded(model, lane, call)
    return { settled: 'purged', published: [] }
  }
  if (call.attempt !== undefined) run.attempts = [...run.attempts, call.attempt]
  settleRun(model, { lane, run }, call, call.outcome)
  const published = call.publish.map((event) => store(model, routes < model.routes ? unroutedYet(event) : event))
  return { settled: 'ok', published }
}

/** Events that a handler published with old routes are stored, and routed later. */
function unroutedYet(event: EventToStore): EventToStore {
  return { ...event, placements: [], unrouted: [{ flow: '', reason: 'routes-old', error: ANY_ERROR }] }
}

type Held = { readonly lane: ModelLane; readonly run: ModelRun }

function settleRun(model: Model, { lane, run }: Held, call: Settlement, outcome: RunOutcome): void {
  switch (outcome.kind) {
    case 'done':
    case 'dropped':
      removeDeadLetter(lane, run)
      return runEnded(model, lane, call)
    case 'retry':
      run.tries += 1
      run.failing = true
      run.failingSince = run.failingSince === 0 ? model.now : run.failingSince
      return putOff(model, { lane, run }, outcome.after, 'retrying')
    case 'snoozed':
      run.failing = false
      run.state64 = outcome.state64
      run.snoozedSince = run.snoozedSince === 0 ? model.now : run.snoozedSince
      return putOff(model, { lane, run }, outcome.after)
    case 'released':
      run.state64 = outcome.state64
      return putOff(model, { lane, run }, outcome.after)
    case 'dead':
      run.tries += 1
      buryRun(model, lane, run, outcome)
      return runEnded(model, lane, call)
    case 'cancelled':
      if (run.asked && canBeCancelled(run, model.now)) return dissolve(model, { lane, run }, call)
      return putOff(model, { lane, run }, 0)
    case 'partial':
      return settlePart(model, { lane, run }, call, outcome)
  }
}

function removeDeadLetter(lane: ModelLane, run: ModelRun): void {
  lane.deadLetters = lane.deadLetters.filter((deadLetter) => deadLetter !== run.deadLetter)
}

function putOff(model: Model, { lane, run }: Held, after: number, state: 'retrying' | 'snoozed' = 'snoozed'): void {
  run.state = state
  run.until = addDelay(model.now, after)
  run.frozen = true
  run.asked = false
  // L5: a ticket is drawn each time the deadline is set, even if it is set to the end of the lease as before.
  setDeadline(model, lane, true)
}

/** The run is dissolved: its events return to their places, in one window with events that arrived meanwhile. */
function dissolve(model: Model, { lane, run }: Held, call: Settlement): void {
  model.dissolved += 1
  const newcomers = liveSpots(lane).filter((spot) => !run.left.includes(spot))
  const leftOver = liveSpots(lane).some((spot) => run.left.includes(spot))
  const window = lane.window
  const { ended } = lane
  lane.waiting = [...lane.waiting, ...run.spots].toSorted((a, b) => a.position - b.position)
  runEnded(model, lane, call)
  lane.ended = ended
  lane.strayCap = Math.min(lane.strayCap, run.earliestCap)
  const atOnce = leftOver || newcomers.length === 0 || run.full
  if (atOnce) lane.strayCap = Math.min(lane.strayCap, model.now)
  lane.window = atOnce ? model.now : Math.max(model.now, Math.min(window, run.earliestCap))
  setDeadline(model, lane, false)
}

type Partial = Extract<RunOutcome, { readonly kind: 'partial' }>

function settlePart(model: Model, { lane, run }: Held, call: Settlement, outcome: Partial): void {
  const dead = run.spots.filter((spot) => outcome.dead.includes(spot.event))
  const again = run.spots.filter((spot) => outcome.retry.includes(spot.event) && !dead.includes(spot))
  if (again.length + dead.length === 0) return settleRun(model, { lane, run }, call, { kind: 'done' })
  const rest = run.deadLetter && { ...run.deadLetter, id: undefined, parent: run.id ?? '', spots: again }
  // The rest of a dead letter is a dead letter, in its place among the others, and still blocks the lane.
  if (rest !== undefined && again.length > 0) {
    lane.deadLetters = lane.deadLetters.map((deadLetter) => (deadLetter === run.deadLetter ? rest : deadLetter))
  } else removeDeadLetter(lane, run)
  const tries = run.tries + 1
  const child = {
    ...blankRun([]),
    family: run.family,
    rank: run.rank,
    replay: run.replay,
    parent: run.id ?? '',
    tries,
    lapses: run.lapses,
    attempts: run.attempts,
  }
  if (dead.length > 0) buryRun(model, lane, { ...child, spots: dead }, outcome)
  if (again.length === 0) return runEnded(model, lane, call)
  lane.run = {
    ...run,
    ...child,
    failingSince: run.failingSince === 0 ? model.now : run.failingSince,
    snoozedSince: run.snoozedSince,
    state64: run.state64,
    left: run.left,
    spots: again,
    deadLetter: rest,
    state: 'retrying',
    failing: true,
    frozen: true,
    asked: false,
    token: 0,
    until: addDelay(model.now, outcome.after),
  }
  setDeadline(model, lane, true)
}

export function renew(model: Model, call: RenewCall): RenewReply['results'] {
  return call.runs.map(({ lane, token, commit }) => {
    const held = holder(model, lane, token)
    if (held === undefined) return 'lost'
    held.run.until = addDelay(model.now, call.lease)
    setDeadline(model, held.lane, false)
    if (held.run.purged) return 'purged'
    if (held.run.asked) return 'cancel'
    if (commit) held.run.committed = true
    return 'ok'
  })
}
