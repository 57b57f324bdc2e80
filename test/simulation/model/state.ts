// The state of the reference model: plain lists of what waits, runs and died, in the terms of the rules. It is naive on
// purpose (it reads every event each time), so that it does not share a mistake with an optimised store.
import { NEVER, type Millis } from '../../../src/clock.ts'
import type { LaneId } from '../../../src/model/identity.ts'
import type { Attempt, Rank } from '../../../src/model/lane.ts'
import type { RunEndOptions } from '../../../src/model/settle.ts'
import type {
  UnroutedReason,
  EventToStore,
  Placement,
  SettleResult,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'

/** The id of a run that ended before any claim showed it. */
export const UNSEEN = '*'

/** One event at one position of one lane. */
export interface Spot {
  readonly event: string
  readonly rank: Rank
  /** The replay that placed it; '' for a live event. */
  readonly replay: string
  readonly position: number
  readonly arrival: Millis
  /** Arrival + max: the latest time at which its window may end. */
  readonly cap: Millis
  readonly size: number
  /** A run left the event over: it is due when that run ends, and no window is open for it. */
  readonly isLeftOver: boolean
}

export interface ModelRun {
  /** Undefined until a claim has shown it: the store draws ids. */
  id: string | undefined
  parent: string
  spots: readonly Spot[]
  /** All events that this run, its parents and its children ever had: errors of one may quote events of another. */
  family: ReadonlySet<string>
  rank: Rank
  replay: string
  deadLetter: ModelDeadLetter | undefined
  state: 'running' | 'retrying' | 'snoozed'
  token: number
  until: Millis
  tries: number
  lapses: number
  failing: boolean
  /** Failed, lapsed, snoozed or given back: nothing dissolves the run any more. */
  frozen: boolean
  asked: boolean
  /** Its events and those that arrived since reach maxEvents or maxBytes. */
  full: boolean
  committed: boolean
  purged: boolean
  /** Events that shared the run with a purged one: they wait again when the run ends. */
  innocent: readonly Spot[]
  failingSince: Millis
  snoozedSince: Millis
  state64: string
  attempts: readonly Attempt[]
  /** The smallest arrival + max over its events and the events that `take` superseded. */
  earliestCap: Millis
  /** Events that it could have taken but left in the lane. */
  left: readonly Spot[]
  superseded: number
}

export interface ModelDeadLetter {
  /** Undefined until a list has shown it: the store draws the id of a partial outcome. */
  id: string | undefined
  readonly parent: string
  readonly replay: string
  readonly lane: LaneId
  spots: readonly Spot[]
  state: 'dead' | 'queued' | 'running'
  readonly family: ReadonlySet<string>
  reason: string
  /** An event of its family was purged, and the store may know this from a record that joins the two. */
  mayHaveLostReason: boolean
  at: Millis
  tries: number
  lapses: number
  blocks: boolean
  /** Since when a dead letter of the lane has been queued, or when a run ended for which it had to wait. */
  due: Millis
}

export interface ModelLane {
  readonly id: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly group: string
  waiting: readonly Spot[]
  /** When the window of the waiting live events ends; NEVER if none waits. */
  window: Millis
  /** A cap of the window that no waiting event has: that of a purged event, or the time at which it was due. */
  strayCap: Millis
  replaysDue: Millis
  /** The number of runs of live events since a replay waits. */
  turnsBesideReplays: number
  run: ModelRun | undefined
  /** In the order of their first deaths. */
  deadLetters: readonly ModelDeadLetter[]
  held: Millis | undefined
  /** A hold that had expired at the last maintenance: a store still has it if it keeps the lane for the times of its runs. */
  mayRememberHold: boolean
  ended: { readonly at: Millis; readonly keep: Millis } | undefined
  deadline: Millis
  ticket: number
}

export interface ModelUnrouted {
  readonly event: string
  readonly flow: string
  reason: UnroutedReason
  readonly error: string
  readonly order: number
  id: number | undefined
  token: number
  /** The end of its lease, while it is leased. */
  due: Millis
}

interface KnownIdentity {
  readonly event: string
  readonly body: string
  readonly until: Millis
}

interface ModelEvent {
  readonly event: EventToStore
  readonly arrived: Millis
  /** Every lane in which it was ever placed. */
  readonly lanes: Set<LaneId>
  /** `perhaps`: finished, and either beyond its retention or shared with a purged event. */
  gone: 'no' | 'perhaps' | 'yes'
  duplicates: number
}

interface LastRequest {
  readonly request: number
  readonly settled: readonly SettleResult[]
  readonly keptOut: SettleAndClaimReply['unstored']
  readonly tokens: readonly number[]
}

export interface Model {
  now: Millis
  routes: number
  /** Orders tickets, positions and turns of groups; only comparisons of it are meaningful. */
  counter: number
  readonly lanes: Map<LaneId, ModelLane>
  readonly events: Map<string, ModelEvent>
  readonly identities: Map<string, KnownIdentity>
  unrouted: readonly ModelUnrouted[]
  /** Tokens of unrouted events that were placed. */
  readonly placedUnrouted: Map<number, number>
  readonly replays: Set<string>
  readonly paused: Set<string>
  /** By flow and group: the turn at which it was last served. */
  readonly served: Map<string, number>
  readonly requests: Map<string, LastRequest>
  /** How often a run was dissolved. */
  dissolved: number
}

export function newModel(now: Millis): Model {
  return {
    now,
    routes: 0,
    counter: 0,
    lanes: new Map(),
    events: new Map(),
    identities: new Map(),
    unrouted: [],
    placedUnrouted: new Map(),
    replays: new Set(),
    paused: new Set(),
    served: new Map(),
    requests: new Map(),
    dissolved: 0,
  }
}

export function laneFor(model: Model, place: Placement, tenant: string): ModelLane {
  const known = model.lanes.get(place.lane)
  if (known !== undefined) return known
  const lane: ModelLane = {
    id: place.lane,
    flow: place.flow,
    key: place.key,
    tenant,
    group: place.group,
    waiting: [],
    window: NEVER,
    strayCap: NEVER,
    replaysDue: NEVER,
    turnsBesideReplays: 0,
    run: undefined,
    deadLetters: [],
    held: undefined,
    mayRememberHold: false,
    ended: undefined,
    deadline: NEVER,
    ticket: 0,
  }
  model.lanes.set(lane.id, lane)
  return lane
}

export function liveSpots(lane: ModelLane): readonly Spot[] {
  return lane.waiting.filter((spot) => spot.rank === 0)
}

export function replaySpots(lane: ModelLane): readonly Spot[] {
  return lane.waiting.filter((spot) => spot.rank === 1)
}

export function isLive(run: ModelRun, now: Millis): boolean {
  return run.state === 'running' && run.until > now
}

/** Whether the run can be dissolved at all (L6c). A passed cap only keeps events from requesting it. */
export function canBeCancelled(run: ModelRun, now: Millis): boolean {
  const fromTheLine = run.rank === 0 && run.deadLetter === undefined
  return isLive(run, now) && fromTheLine && !run.frozen && !run.committed && !run.purged
}

/** Whether anything still has to be done with an event: it waits, runs, is dead or unrouted somewhere. */
export function isPending(model: Model, event: string): boolean {
  const has = (spots: readonly Spot[]): boolean => spots.some((spot) => spot.event === event)
  if (model.unrouted.some((entry) => entry.event === event)) return true
  return [...model.lanes.values()].some((lane) => {
    const inRun = lane.run !== undefined && (has(lane.run.spots) || has(lane.run.innocent))
    return inRun || has(lane.waiting) || lane.deadLetters.some((deadLetter) => has(deadLetter.spots))
  })
}

/** Maintenance forgets what is over. Retention may have deleted finished events (L23): a replay may find them or not. */
export function maintain(model: Model, keepNothing: boolean): void {
  for (const lane of model.lanes.values()) {
    if (!isForgotten(model, lane)) continue
    lane.mayRememberHold ||= lane.held !== undefined
    forgetThePast(model, lane)
  }
  if (!keepNothing) return
  for (const [id, known] of model.events) if (known.gone === 'no' && !isPending(model, id)) known.gone = 'perhaps'
}

/** The latest time at which the window of the waiting live events may end. */
export function capOfWindow(lane: ModelLane): Millis {
  const open = liveSpots(lane).filter((spot) => !spot.isLeftOver)
  return least([...open.map((spot) => spot.cap), lane.strayCap])
}

export function least(numbers: readonly Millis[]): Millis {
  return numbers.reduce((a, b) => Math.min(a, b), NEVER)
}

/** A lane of which nothing has to be kept. */
function isForgotten(model: Model, lane: ModelLane): boolean {
  const deadLetters = lane.deadLetters.some((deadLetter) => deadLetter.blocks || deadLetter.state === 'queued')
  const held = lane.held !== undefined && lane.held > model.now
  return lane.waiting.length === 0 && lane.run === undefined && !deadLetters && !held
}

/** Expired holds and times stay expired, even if the clock jumps back. */
function forgetThePast(model: Model, lane: ModelLane): void {
  if (lane.held !== undefined && lane.held <= model.now) lane.held = undefined
  if (lane.ended !== undefined && lane.ended.at + lane.ended.keep <= model.now) lane.ended = undefined
}

function deadlineOf(lane: ModelLane): Millis {
  if (lane.run !== undefined) return lane.run.until
  const queued = lane.deadLetters.filter((deadLetter) => deadLetter.state === 'queued')
  if (queued.length > 0) return least(queued.map((deadLetter) => deadLetter.due))
  if (lane.deadLetters.some((deadLetter) => deadLetter.blocks)) return NEVER
  return Math.min(lane.window, lane.replaysDue)
}

/** Must be called after every change of a lane: sets its deadline, and draws its ticket (`anew`: in any case). */
export function setDeadline(model: Model, lane: ModelLane, anew: boolean): void {
  if (liveSpots(lane).length === 0) {
    lane.window = NEVER
    lane.strayCap = NEVER
  }
  if (replaySpots(lane).length === 0) {
    lane.replaysDue = NEVER
    lane.turnsBesideReplays = 0
  }
  if (isForgotten(model, lane)) forgetThePast(model, lane)
  const deadline = Math.max(deadlineOf(lane), lane.held ?? 0)
  if (deadline !== lane.deadline || anew) lane.ticket = ++model.counter
  lane.deadline = deadline
}

/** A run has ended, in any way: waiting events get their deadline, behind lanes that are ready now (L6, L7). */
export function runEnded(model: Model, lane: ModelLane, end: RunEndOptions): void {
  const run = lane.run
  if (run === undefined) return
  lane.run = undefined
  lane.waiting = [...lane.waiting, ...run.innocent].toSorted((a, b) => a.position - b.position)
  if (end.keep > 0) lane.ended = { at: model.now, keep: end.keep }
  const fromTheLine = run.rank === 0 && run.deadLetter === undefined
  const leftOver = liveSpots(lane).some((spot) => run.left.includes(spot))
  const atOnce =
    leftOver || run.innocent.some((spot) => spot.rank === 0) || (fromTheLine && end.whileRunning === 'requeue')
  lane.window = atOnce ? model.now : Math.max(lane.window, model.now)
  const isPurged = run.innocent.some((spot) => spot.rank === 0)
  if (isPurged) lane.strayCap = Math.min(lane.strayCap, run.earliestCap)
  if (isPurged || leftOver) lane.strayCap = Math.min(lane.strayCap, model.now)
  lane.replaysDue = model.now
  for (const deadLetter of lane.deadLetters) if (deadLetter.state === 'queued') deadLetter.due = model.now
  setDeadline(model, lane, true)
}
