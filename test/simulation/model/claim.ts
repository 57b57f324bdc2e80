// Which lane is served, and what it runs, in the reference model (L5, L5g, L7, L12, L16, L24).
import { addDelay, NEVER } from '../../../src/clock.ts'
import type { ClaimRequest } from '../../../src/store/contract/index.ts'
import { capOfWindow, isLive, least, liveSpots, replaySpots, runEnded, setDeadline } from './state.ts'
import type { ModelDeadLetter, Model, ModelLane, ModelRun, Spot } from './state.ts'

export interface Granted {
  readonly lane: ModelLane
  readonly run: ModelRun
  /** The id must be one that no reply has shown. */
  readonly fresh: boolean
  readonly due: number
}

export interface Claimed {
  readonly granted: readonly Granted[]
  readonly crashed: readonly { readonly lane: ModelLane; readonly deadLetter: ModelDeadLetter }[]
}

const LAPSES_OF_A_CRASH = 4
const LIVE_TURNS_PER_REPLAY = 8

type Line = 'healthy' | 'failing' | 'suspect'

export function lapsesFound(run: ModelRun, now: number): number {
  return run.lapses + (run.state === 'running' && run.until <= now ? 1 : 0)
}

export function lineOf(lane: ModelLane, now: number): Line {
  if (lane.run === undefined) return 'healthy'
  if (lapsesFound(lane.run, now) >= 2) return 'suspect'
  return lane.run.failing ? 'failing' : 'healthy'
}

/** The health of the lane, or the one it would have if its live run lapsed. */
function standsIn(lane: ModelLane): Line {
  return lineOf(lane, lane.run?.state === 'running' ? lane.run.until : 0)
}

/** The next deadline of a flow for which the claim had slots, or undefined if nothing of it waits for time. */
export function headOf(
  model: Model,
  { flow, maxRuns: slots, maxFailing: failing, maxSuspects: suspects }: ClaimRequest,
): number | undefined {
  const slotsOf: Record<Line, number> = { healthy: 1, failing, suspect: suspects }
  const deadlines = [...model.lanes.values()]
    .filter((lane) => lane.flow === flow && (slots === 0 || slotsOf[standsIn(lane)] > 0))
    .map((lane) => lane.deadline)
  const first = deadlines.reduce((a, b) => Math.min(a, b), NEVER)
  return first === NEVER ? undefined : first
}

export function byDeadline(a: ModelLane, b: ModelLane): number {
  return a.deadline - b.deadline || a.ticket - b.ticket
}

function liveRuns(model: Model, flow: string, group: string): number {
  const lanes = [...model.lanes.values()].filter((lane) => lane.flow === flow && lane.group === group)
  return lanes.filter((lane) => lane.run !== undefined && isLive(lane.run, model.now)).length
}

/** The lane that is served next, if any may be. */
function nextLane(model: Model, call: ClaimRequest, left: Record<Line, number>): ModelLane | undefined {
  const ready = [...model.lanes.values()]
    .filter((lane) => lane.flow === call.flow && lane.deadline <= model.now)
    .filter((lane) => left[lineOf(lane, model.now)] > 0)
    .toSorted(byDeadline)
  const { maxPerGroup: perGroup } = call
  if (perGroup === undefined) return ready[0]
  const open = ready.filter((lane) => liveRuns(model, lane.flow, lane.group) < perGroup)
  const heads = open.filter((lane) => open.find((other) => other.group === lane.group) === lane)
  const lastServed = (lane: ModelLane): number => model.served.get(`${lane.flow}/${lane.group}`) ?? 0
  return heads.toSorted((a, b) => lastServed(a) - lastServed(b) || byDeadline(a, b))[0]
}

export function claim(model: Model, call: ClaimRequest): Claimed {
  const granted: Granted[] = []
  const crashed: { lane: ModelLane; deadLetter: ModelDeadLetter }[] = []
  if (model.paused.has(call.flow)) return { granted, crashed }
  const left = { healthy: call.maxRuns, failing: call.maxFailing, suspect: call.maxSuspects }
  while (granted.length < call.maxRuns) {
    const lane = nextLane(model, call, left)
    if (lane === undefined) break
    const due = lane.deadline
    const line = lineOf(lane, model.now)
    if (lane.run !== undefined && lane.run.purged) {
      endPurgedDeadLetter(lane, lane.run)
      runEnded(model, lane, { whileRunning: 'window', keep: 0 })
      continue
    }
    if (lane.run !== undefined && lapsesFound(lane.run, model.now) >= LAPSES_OF_A_CRASH) {
      crashed.push({ lane, deadLetter: crash(model, lane, lane.run, call.blockOnCrash) })
      continue
    }
    left[line] -= 1
    const fresh = lane.run === undefined && !lane.deadLetters.some((deadLetter) => deadLetter.state === 'queued')
    const run = turnOf(model, lane, call)
    if (call.maxPerGroup !== undefined) model.served.set(`${lane.flow}/${lane.group}`, ++model.counter)
    granted.push({ lane, run, fresh, due })
  }
  return { granted, crashed }
}

function crash(model: Model, lane: ModelLane, run: ModelRun, block: boolean): ModelDeadLetter {
  run.lapses += 1
  const deadLetter = buryRun(model, lane, run, { reason: 'crashed', block })
  runEnded(model, lane, { whileRunning: 'window', keep: 0 })
  return deadLetter
}

/** The events that a purge left in the dead letter are dead as before. */
export function endPurgedDeadLetter(lane: ModelLane, run: ModelRun): void {
  if (run.deadLetter !== undefined) run.deadLetter.state = 'dead'
  lane.deadLetters = lane.deadLetters.filter(
    (deadLetter) => deadLetter !== run.deadLetter || deadLetter.spots.length > 0,
  )
}

/** The run's events become a dead letter under its id; a run of a dead letter becomes that dead letter again. */
export function buryRun(
  model: Model,
  lane: ModelLane,
  run: ModelRun,
  why: { reason: string; block: boolean },
): ModelDeadLetter {
  const before = run.deadLetter
  const deadLetter: ModelDeadLetter = {
    id: run.id,
    parent: run.parent,
    replay: run.replay,
    lane: lane.id,
    spots: run.spots,
    family: run.family,
    state: 'dead',
    reason: why.reason,
    mayHaveLostReason: false,
    at: model.now,
    tries: run.tries,
    lapses: run.lapses,
    blocks: why.block || (before?.blocks ?? false),
    due: 0,
  }
  // It is the same dead letter, in its old place among the others.
  const known = before !== undefined && lane.deadLetters.includes(before)
  lane.deadLetters = known
    ? lane.deadLetters.map((other) => (other === before ? deadLetter : other))
    : [...lane.deadLetters, deadLetter]
  return deadLetter
}

function turnOf(model: Model, lane: ModelLane, call: ClaimRequest): ModelRun {
  const run = lane.run ?? newRun(model, lane, call)
  if (lane.run !== undefined && run.state === 'running') {
    run.lapses += 1
    run.frozen = true
    run.asked = false
  }
  lane.run = run
  // The hold has expired, otherwise the lane would not be served.
  lane.held = undefined
  run.state = 'running'
  run.until = addDelay(model.now, call.lease)
  setDeadline(model, lane, true)
  return run
}

function newRun(model: Model, lane: ModelLane, call: ClaimRequest): ModelRun {
  const deadLetter = lane.deadLetters.find((other) => other.state === 'queued')
  if (deadLetter !== undefined) {
    deadLetter.state = 'running'
    const { id, parent, replay, family } = deadLetter
    return { ...blankRun(deadLetter.spots), id, parent, replay, family, deadLetter, frozen: true }
  }
  const live = liveSpots(lane)
  const replays = replaySpots(lane)
  const replaysAreDue = replays.length > 0 && lane.replaysDue <= model.now
  const liveIsDue = live.length > 0 && lane.window <= model.now
  const replayTurn = replaysAreDue && (!liveIsDue || lane.turnsBesideReplays >= LIVE_TURNS_PER_REPLAY)
  lane.turnsBesideReplays = replayTurn || replays.length === 0 ? 0 : lane.turnsBesideReplays + 1
  return takeFrom(lane, replayTurn ? replays : live, call)
}

function takeFrom(lane: ModelLane, line: readonly Spot[], call: ClaimRequest): ModelRun {
  const ordered = line.toSorted((a, b) => a.position - b.position)
  const taken =
    call.take === 'all' ? firstThatFit(ordered, call) : ordered.slice(call.take === 'first' ? 0 : -1).slice(0, 1)
  const passedOver = ordered.filter((spot) => !taken.includes(spot))
  // Superseded events end with the run that was taken instead, which has waited for as long.
  const earliestCap = call.take === 'all' ? least(taken.map((spot) => spot.cap)) : capOfWindow(lane)
  const others = passedOver.map((spot) => ({ ...spot, isLeftOver: true }))
  if (ordered[0]?.rank === 0) lane.strayCap = NEVER
  const untouched = lane.waiting.filter((spot) => !ordered.includes(spot))
  lane.waiting = call.take === 'all' ? [...untouched, ...others].toSorted((a, b) => a.position - b.position) : untouched
  return {
    ...blankRun(taken.map((spot) => ({ ...spot, isLeftOver: false }))),
    rank: ordered[0]?.rank ?? 0,
    replay: taken[0]?.replay ?? '',
    earliestCap,
    left: call.take === 'all' ? others : [],
    superseded: call.take === 'all' ? 0 : others.length,
  }
}

function firstThatFit(ordered: readonly Spot[], call: ClaimRequest): readonly Spot[] {
  const taken: Spot[] = []
  let bytes = 0
  for (const spot of ordered) {
    bytes += spot.size
    if (spot.replay !== ordered[0]?.replay) break
    if (taken.length > 0 && (taken.length >= call.maxEvents || bytes > call.maxBytes)) break
    taken.push(spot)
  }
  return taken
}

export function blankRun(spots: readonly Spot[]): ModelRun {
  return {
    id: undefined,
    parent: '',
    spots,
    family: new Set(spots.map(({ event }) => event)),
    rank: 0,
    replay: '',
    deadLetter: undefined,
    state: 'snoozed',
    token: 0,
    until: 0,
    tries: 0,
    lapses: 0,
    failing: false,
    frozen: false,
    asked: false,
    full: false,
    committed: false,
    purged: false,
    innocent: [],
    failingSince: 0,
    snoozedSince: 0,
    state64: '',
    attempts: [],
    earliestCap: 0,
    left: [],
    superseded: 0,
  }
}
