// Operators' actions on lanes, dead letters, unrouted events and flows, in the reference model (L9, L14).
import { addDelay } from '../../../src/clock.ts'
import type { LaneAction, SteerCall, SteerReply } from '../../../src/store/contract/index.ts'
import { canBeCancelled, isLive, least, liveSpots, runEnded, setDeadline } from './state.ts'
import type { ModelDeadLetter, Model, ModelLane } from './state.ts'

export type Steered = SteerReply['results'][number]

/** Whether a store must know the lane: something of it waits, runs, is queued, blocks or is held. */
function isKnown(model: Model, lane: ModelLane | undefined): lane is ModelLane {
  if (lane === undefined) return false
  const held = lane.held !== undefined && lane.held > model.now
  const deadLetters = lane.deadLetters.some((deadLetter) => deadLetter.blocks || deadLetter.state === 'queued')
  return lane.waiting.length > 0 || lane.run !== undefined || deadLetters || held
}

/** The reply to a steer of a lane. `seen` matters only if a store may have forgotten the lane: an empty one, or an expired hold. */
function steerLane(model: Model, id: string, act: LaneAction, seen: Steered | undefined): Steered {
  const lane = model.lanes.get(id)
  if (lane === undefined || (!isKnown(model, lane) && seen === 'missing')) return 'missing'
  switch (act.kind) {
    case 'run-now':
      return runNow(model, lane)
    case 'cancel':
      return cancel(model, lane)
    case 'hold':
      lane.held = addDelay(model.now, act.for)
      setDeadline(model, lane, false)
      return 'ok'
    case 'unhold':
      if (lane.held === undefined && !(lane.mayRememberHold && seen === 'ok')) return 'already'
      if (lane.held !== undefined && lane.held <= model.now && seen === 'already') return 'already'
      lane.held = undefined
      lane.mayRememberHold = false
      setDeadline(model, lane, false)
      return 'ok'
    case 'drop':
      return drop(model, lane)
  }
}

function runNow(model: Model, lane: ModelLane): Steered {
  const { run } = lane
  if (run !== undefined && isLive(run, model.now)) return 'running'
  if (run !== undefined) {
    if (run.until <= model.now) return 'already'
    run.until = model.now
  } else {
    if (liveSpots(lane).length === 0 || lane.window <= model.now) return 'already'
    lane.window = model.now
  }
  setDeadline(model, lane, false)
  return 'ok'
}

function cancel(model: Model, lane: ModelLane): Steered {
  const { run } = lane
  if (run === undefined || !isLive(run, model.now)) return 'missing'
  if (!canBeCancelled(run, model.now)) return 'already'
  run.asked = true
  return 'ok'
}

function drop(model: Model, lane: ModelLane): Steered {
  const { run } = lane
  const runWaits = run !== undefined && !isLive(run, model.now)
  if (lane.waiting.length === 0 && !runWaits) return run === undefined ? 'already' : 'running'
  lane.waiting = []
  if (runWaits) {
    run.innocent = []
    lane.deadLetters = lane.deadLetters.filter((deadLetter) => deadLetter !== run.deadLetter)
    runEnded(model, lane, { whileRunning: 'window', keep: 0 })
  } else setDeadline(model, lane, false)
  return 'ok'
}

function deadLetterOf(model: Model, id: string): { lane: ModelLane; deadLetter: ModelDeadLetter } | undefined {
  for (const lane of model.lanes.values()) {
    const deadLetter = lane.deadLetters.find((other) => other.id === id)
    if (deadLetter !== undefined) return { lane, deadLetter }
  }
  return undefined
}

function steerDeadLetter(model: Model, id: string, act: 'retry' | 'drop' | 'unblock'): Steered {
  const found = deadLetterOf(model, id)
  if (found === undefined) return 'missing'
  const { lane, deadLetter } = found
  if (act === 'unblock') {
    if (!deadLetter.blocks) return 'already'
    deadLetter.blocks = false
    setDeadline(model, lane, false)
  } else if (deadLetter.state === 'running') return act === 'retry' ? 'already' : 'running'
  else if (act === 'drop') {
    lane.deadLetters = lane.deadLetters.filter((other) => other !== deadLetter)
    setDeadline(model, lane, false)
  } else if (deadLetter.state === 'queued') return 'already'
  else {
    deadLetter.state = 'queued'
    deadLetter.due = model.now
    // The lane keeps the place of its first queued dead letter, even if that one is dropped.
    const queued = lane.deadLetters.filter(({ state }) => state === 'queued')
    const first = least(queued.map(({ due }) => due))
    for (const one of queued) one.due = first
  }
  setDeadline(model, lane, false)
  return 'ok'
}

function steerUnrouted(model: Model, id: number, act: 'retry' | 'drop'): Steered {
  const entry = model.unrouted.find((other) => other.id === id)
  if (entry === undefined) return 'missing'
  if (act === 'drop') model.unrouted = model.unrouted.filter((other) => other !== entry)
  else {
    // A process that had leased it has lost it.
    entry.due = model.now
    entry.token = 0
    // From now on, any process that serves the flow places it.
    if (entry.reason === 'key-failed' || entry.reason === 'schema-failed') entry.reason = 'routes-old'
  }
  return 'ok'
}

function steerFlow(model: Model, flow: string, pause: boolean): Steered {
  if (model.paused.has(flow) === pause) return 'already'
  if (pause) model.paused.add(flow)
  else model.paused.delete(flow)
  return 'ok'
}

export function steer(model: Model, call: SteerCall, seen: readonly Steered[]): readonly Steered[] {
  switch (call.what) {
    case 'lanes':
      return call.ids.map((id, n) => steerLane(model, id, call.act, seen[n]))
    case 'dead':
      return call.ids.map((id) => steerDeadLetter(model, id, call.act))
    case 'unrouted':
      return call.ids.map((id) => steerUnrouted(model, id, call.act))
    case 'flows':
      return call.ids.map((id) => steerFlow(model, id, call.act.kind === 'pause'))
  }
}
