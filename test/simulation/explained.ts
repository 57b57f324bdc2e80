// Compares what explain says about a lane, in every state that a history reaches, with the reference model.
import { NEVER, type Millis } from '../../src/clock.ts'
import type { Flow } from '../../src/model/flow.ts'
import { explain, type Explanation } from '../../src/observe/explain/explain.ts'
import { createFlow } from '../../src/flow/options.ts'
import { byDeadline, lapsesFound, lineOf } from './model/claim.ts'
import { isLive, liveSpots, replaySpots, type Model, type ModelLane, type ModelRun } from './model/state.ts'
import { FLOWS } from './settings.ts'
import { demand, expectSame } from './violation.ts'
import type { World } from './world.ts'

const declared: ReadonlyMap<string, Flow> = new Map(
  FLOWS.map(({ name, perGroup }) => {
    const share = perGroup === undefined ? {} : ({ share: 'tenant', concurrency: perGroup } as const)
    return [name, createFlow<never>(name, { on: '**', key: () => '', run: () => {}, ...share })]
  }),
)

/** One of the lanes of the history: the n-th, modulo their number. */
export async function checkExplained(world: World, n: number): Promise<void> {
  const lanes = [...world.model.lanes.values()]
  const lane = lanes[n % lanes.length]
  if (lane === undefined) return
  const parts = {
    store: world.store,
    flows: declared,
    isServed: () => true,
    findSlotWait: () => undefined,
    isProcessFull: () => false,
    claimError: () => undefined,
    hasLingeringHandler: () => false,
  }
  const said = await explain(parts, lane.flow, lane.key)
  const now = world.clock.now()
  world.reach(`explained ${said.state}`)
  demand(!/undefined|NaN|Infinity|null/.test(said.text), `explain says "${said.text}"`)
  const { held, ...facts } = factsOf(said)
  const ours = modelFacts(world.model, lane, now)
  const told = held !== undefined && held <= now ? undefined : held
  expectSame(`explain of ${lane.flow}/${lane.key}: "${said.text}"`, ours, { ...facts, held: told })
}

type Facts = Readonly<Record<string, unknown>>

function factsOf({ state, facts }: Explanation): Facts & { readonly held: Millis | undefined } {
  const { deadline, waiting, replays, queued, line, position, attempt, lapses, leaseEnds, cancelAsked, purged } = facts
  return {
    // An empty lane may exist or not.
    state: state === 'empty' ? 'idle' : state,
    in: deadline === undefined ? undefined : facts.in,
    deadline,
    waiting,
    replays,
    queued,
    line,
    position,
    attempt,
    lapses,
    leaseEnds,
    cancelAsked,
    purged,
    events: purged ? undefined : facts.events,
    snoozedSince: facts.snoozedSince,
    kind: facts.kind,
    isPaused: facts.pausedBy !== undefined,
    isBlocked: facts.blockedBy !== undefined,
    held: facts.heldUntil,
  }
}

function modelFacts(model: Model, lane: ModelLane, now: Millis): Facts {
  const { run } = lane
  const state = stateOf(lane, now)
  const deadline = lane.deadline === NEVER ? undefined : lane.deadline
  const isReady = deadline !== undefined && deadline <= now
  return {
    state,
    in: deadline === undefined ? undefined : deadline - now,
    deadline,
    waiting: liveSpots(lane).length,
    replays: replaySpots(lane).length,
    queued: lane.deadLetters.filter((deadLetter) => deadLetter.state === 'queued').length,
    line: isReady ? lineOf(lane, now) : undefined,
    position: isReady ? positionOf(model, lane, now) : undefined,
    ...runFacts(run, now),
    isPaused: model.paused.has(lane.flow),
    isBlocked: withoutHold(lane, now) === 'blocked',
    held: lane.held === undefined || lane.held <= now || lane.held === NEVER ? undefined : lane.held,
  }
}

function runFacts(run: ModelRun | undefined, now: Millis): Facts {
  if (run === undefined) return { attempt: undefined, ...NO_RUN }
  return {
    attempt: run.tries + 1,
    lapses: lapsesFound(run, now),
    leaseEnds: run.state === 'running' ? run.until : undefined,
    cancelAsked: run.asked,
    purged: run.purged,
    events: run.purged ? undefined : run.spots.length,
    snoozedSince: run.snoozedSince === 0 ? undefined : run.snoozedSince,
    kind: run.deadLetter !== undefined ? 'dead-letter' : run.rank === 1 ? 'replay' : 'live',
  }
}

const NO_RUN = {
  lapses: undefined,
  leaseEnds: undefined,
  cancelAsked: false,
  purged: false,
  events: undefined,
  snoozedSince: undefined,
  kind: undefined,
}

function stateOf(lane: ModelLane, now: Millis): string {
  const { run, held } = lane
  if (run !== undefined && isLive(run, now)) return 'running'
  if (held !== undefined && held > now) return 'held'
  return withoutHold(lane, now)
}

function withoutHold(lane: ModelLane, now: Millis): string {
  const { run } = lane
  if (run !== undefined) return run.state === 'running' ? 'lapsed' : run.state
  if (lane.deadline <= now) return 'ready'
  if (lane.deadline < NEVER) return 'waiting'
  // Only an infinite hold keeps a queued dead letter from running: it runs even in a blocked lane (L9).
  if (lane.deadLetters.some((deadLetter) => deadLetter.state === 'queued')) return 'ready'
  return lane.deadLetters.some((deadLetter) => deadLetter.blocks) ? 'blocked' : 'idle'
}

function positionOf(model: Model, lane: ModelLane, now: Millis): number {
  const grouped = declared.get(lane.flow)?.share !== undefined
  const ahead = [...model.lanes.values()].filter(
    (other) =>
      other.flow === lane.flow &&
      (!grouped || other.group === lane.group) &&
      byDeadline(other, lane) < 0 &&
      lineOf(other, now) === lineOf(lane, now),
  )
  return ahead.length + 1
}
