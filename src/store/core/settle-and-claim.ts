// `settleAndClaim` settles runs, then claims ready lanes in one commit, in the order (deadline, ticket); groups take turns (L5,
// L5g).
import type { Millis } from '../../clock.ts'
import type { EventIdentity, LaneId } from '../../model/identity.ts'
import { SluiceError } from '../../errors.ts'
import {
  beginRun,
  beginDeadLetterRun,
  countEventsToTake,
  decideNextClaim,
  resumeRun,
  type ClaimContext,
} from '../../model/claim.ts'
import { FAILING, HEALTHY, isLiveRun, SUSPECT, type Lane, type LaneHealth, type Rank } from '../../model/lane.ts'
import type {
  AppendResult,
  ClaimRequest,
  FlowDeadline,
  UnstoredPublish,
  LeasedRun,
  SettleResult,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../contract/index.ts'
import { BodyBudget, toClaimedRun, toLeasedRuns, type ClaimedRun } from './leases.ts'
import { moveToDeadLetters, endPurgedRun, recordRun, settleRun } from './settle.ts'
import type { PlacementRow, ReplyBody } from './tables.ts'
import type { CommitContext } from './commit-context.ts'

type SettleAndClaimResult = ReplyBody<SettleAndClaimReply>

interface StoredAnswer {
  readonly settled: readonly SettleResult[]
  /** Omitted if empty, which is nearly always. */
  readonly keptOut?: readonly UnstoredPublish[]
  readonly claimed: readonly StoredClaim[]
  readonly crashed: SettleAndClaimResult['crashed']
}

/** `StoredClaim` is a tuple without field names, because every call writes it. */
type StoredClaim = readonly [lane: LeasedRun['lane'], token: number, due: Millis, superseded: number]

export function settleAndClaim(work: CommitContext, call: SettleAndClaimCall): SettleAndClaimResult | SluiceError {
  const last = work.tables.small.getProcess(call.process)
  const budget = new BodyBudget(call.budget)
  if (last !== undefined && call.request <= last.request) {
    if (call.request < last.request)
      return new SluiceError('REQUEST_STALE', `Request ${call.request} came after request ${last.request}.`)
    return repeatAnswer(work, call, JSON.parse(last.answer) as StoredAnswer, budget)
  }
  work.tables.prefetch?.(...collectIdentifiers(call))
  const ended = call.settle.map((one) => settleRun(work, one, call.routes))
  const settled = ended.map((one) => one.settled)
  const keptOut = ended.flatMap(({ published }, at) => collectUnstored(at, published))
  const found: ClaimFindings = { crashed: [], damaged: [] }
  const served = call.claim.map((claim) => claimForFlow(work, claim, budget, found))
  const { crashed, damaged } = found
  const claimed = served.flat()
  const kept: StoredAnswer = {
    settled,
    ...(keptOut.length > 0 && { keptOut }),
    claimed: claimed.map(({ lane, token, due, superseded }) => [lane, token, due, superseded]),
    crashed,
  }
  work.tables.small.putProcess(call.process, { at: work.now, request: call.request, answer: JSON.stringify(kept) })
  const isFull = (claim: ClaimRequest, at: number): boolean => claim.maxRuns > 0 && served[at]?.length === claim.maxRuns
  const heads = findNextDeadlines(work, call, isFull)
  if (damaged.length > 0) throw new SluiceError('STORE_DAMAGED', damaged.join(' '))
  return { settled, unstored: keptOut, claimed, crashed, nextDeadlines: heads }
}

/** Collects all lanes and identities of the settlements, so that a store can load them before the first settlement. */
function collectIdentifiers({
  settle: ended,
}: SettleAndClaimCall): readonly [lanes: readonly LaneId[], identities: readonly EventIdentity[]] {
  const published = ended.flatMap(({ publish }) => publish)
  const placed = published.flatMap(({ placements }) => placements.map(({ lane }) => lane))
  return [[...ended.map(({ lane }) => lane), ...placed], published.map(({ identity }) => identity)]
}

function collectUnstored(at: number, published: readonly AppendResult[]): readonly UnstoredPublish[] {
  return published.flatMap((result, publish) =>
    result.kind === 'stored' || result.kind === 'routes-old' ? [] : [{ settle: at, publish, result }],
  )
}

/**
 * Returns the next deadline of each flow. A claim that got all its runs is repeated anyway, so its next deadline is not looked up.
 */
function findNextDeadlines(
  work: CommitContext,
  call: SettleAndClaimCall,
  isFull: (claim: ClaimRequest, at: number) => boolean,
): readonly FlowDeadline[] {
  return call.claim.map((claim, at) => {
    const { flow } = claim
    return {
      flow,
      due: isFull(claim, at) ? work.now : work.tables.lanes.findNextDeadline(flow, getClaimableHealths(claim)),
    }
  })
}

/** `getClaimableHealths` leaves out lanes that the claim could not take anyway: they must not hide the deadlines behind them. */
export function getClaimableHealths({
  maxRuns: slots,
  maxFailing: failing,
  maxSuspects: suspects,
}: ClaimRequest): readonly LaneHealth[] {
  if (slots === 0) return ALL_HEALTHS
  return ALL_HEALTHS.filter((health) => health === HEALTHY || (health === FAILING ? failing : suspects) > 0)
}

/** Repeats a lost reply: the same results, with the leases that are still live (L12). */
function repeatAnswer(
  work: CommitContext,
  call: SettleAndClaimCall,
  kept: StoredAnswer,
  budget: BodyBudget,
): SettleAndClaimResult {
  const live = kept.claimed.flatMap(([id, token, due, superseded]) => {
    const lane = work.tables.lanes.get(id)
    const isSame = lane?.run !== undefined && lane.run.token === token && isLiveRun(lane.run, work.now)
    return isSame ? [toClaimedRun(work, lane, due, superseded)] : []
  })
  const claimed = toLeasedRuns(work, live, budget)
  const { settled, keptOut = [], crashed } = kept
  return { settled, unstored: keptOut, claimed, crashed, nextDeadlines: findNextDeadlines(work, call, () => false) }
}

/** `ClaimQuota` counts how many lanes of each health a call may still claim. */
class ClaimQuota {
  #runs: number
  readonly #byHealth: Map<LaneHealth, number>

  constructor(claim: ClaimRequest) {
    this.#runs = claim.maxRuns
    this.#byHealth = new Map([
      [HEALTHY, claim.maxRuns],
      [FAILING, claim.maxFailing],
      [SUSPECT, claim.maxSuspects],
    ])
  }

  remaining(health: LaneHealth): number {
    return Math.max(0, Math.min(this.#runs, this.#byHealth.get(health) ?? 0))
  }

  use(health: LaneHealth): void {
    this.#runs--
    this.#byHealth.set(health, (this.#byHealth.get(health) ?? 0) - 1)
  }

  get runs(): number {
    return Math.max(0, this.#runs)
  }

  get healths(): readonly LaneHealth[] {
    return ALL_HEALTHS.filter((health) => this.remaining(health) > 0)
  }
}

const ALL_HEALTHS: readonly LaneHealth[] = [HEALTHY, FAILING, SUSPECT]

/** `ClaimFindings` collects what the claims of a call find besides runs. */
interface ClaimFindings {
  readonly crashed: { readonly lane: string; readonly run: string }[]
  /**
   * Lanes whose rows contradict each other. The claim continues, so a store that loads step by step learns everything that is
   * missing.
   */
  readonly damaged: string[]
}

function claimForFlow(
  work: CommitContext,
  claim: ClaimRequest,
  budget: BodyBudget,
  found: ClaimFindings,
): readonly LeasedRun[] {
  if (work.tables.small.getPause(claim.flow) !== undefined) return []
  const quota = new ClaimQuota(claim)
  const next =
    claim.maxPerGroup === undefined
      ? pickInOrder(work, claim, quota)
      : pickByGroup(work, claim, quota, claim.maxPerGroup)
  const given: ClaimedRun[] = []
  for (let lane = next.pick(); lane !== undefined; lane = next.pick()) {
    const health = lane.health
    const outcome = claimLane(work, lane, claim, found)
    if ('lane' in outcome) {
      quota.use(health)
      given.push(outcome)
      work.addLaneFeedEntry(lane, 'claimed', '', outcome.lane.run?.id ?? '')
      next.onServed(lane)
    } else {
      if (outcome.crashed !== '') {
        found.crashed.push({ lane: lane.id, run: outcome.crashed })
        work.addLaneFeedEntry(lane, 'settled', 'dead', outcome.crashed)
      }
      // The lane now has another place in the index, and may be ready again.
      next.onMoved()
    }
  }
  return toLeasedRuns(work, given, budget)
}

interface LanePicker {
  pick(): Lane | undefined
  onServed(lane: Lane): void
  onMoved(): void
}

/** Picks lanes by (deadline, ticket) among the healths that have slots left. */
function pickInOrder(work: CommitContext, claim: ClaimRequest, quota: ClaimQuota): LanePicker {
  let ahead: Lane[] | undefined
  return {
    pick() {
      ahead ??= findReadyLanes(work, claim.flow, quota)
      for (let lane = ahead.shift(); lane !== undefined; lane = ahead.shift())
        if (quota.remaining(lane.health) > 0) return lane
      return undefined
    },
    onServed() {},
    onMoved() {
      ahead = undefined
    },
  }
}

function findReadyLanes(work: CommitContext, flow: string, quota: ClaimQuota): Lane[] {
  const healths = quota.healths.map((health) =>
    work.tables.lanes.findReady({ flow, health, now: work.now, n: quota.remaining(health) }),
  )
  return healths.length === 1 ? [...(healths[0] ?? [])] : healths.flat().toSorted(compareByDeadline)
}

function compareByDeadline(one: Lane, other: Lane): number {
  return one.due - other.due || one.ticket - other.ticket
}

/** Picks the group that was served longest ago. The lanes of each group keep their order (L5g). */
function pickByGroup(work: CommitContext, claim: ClaimRequest, quota: ClaimQuota, perGroup: number): LanePicker {
  const { lanes } = work.tables
  const { flow } = claim
  let ahead: { readonly heads: Lane[]; readonly healths: number } | undefined
  return {
    pick() {
      const { healths, runs: slots } = quota
      if (slots === 0) return undefined
      // Each group gets one lane per round. When a health runs out of slots, the first lane of a group may change.
      if (ahead === undefined || ahead.heads.length === 0 || ahead.healths !== healths.length) {
        const heads = lanes.findGroupHeads({ flow, healths, now: work.now, maxPerGroup: perGroup, n: slots })
        ahead = { heads: [...heads], healths: healths.length }
      }
      return ahead.heads.shift()
    },
    onServed(lane) {
      lanes.recordGroupServed(lane, work.draw(), work.now)
    },
    onMoved() {
      ahead = undefined
    },
  }
}

/** Claims one lane: returns a run, or what happened instead. */
function claimLane(
  work: CommitContext,
  lane: Lane,
  claim: ClaimRequest,
  found: ClaimFindings,
): ClaimedRun | { readonly crashed: string } {
  if (lane.run?.purged === true) {
    work.saveLane(endPurgedRun(work, lane, lane.run, { whileRunning: 'window', keep: 0 }))
    return { crashed: '' }
  }
  const next = decideNextClaim(lane, work.now)
  const context = { now: work.now, draw: work.draw, token: work.draw(), caps: claim }
  switch (next.kind) {
    case 'crashed': {
      const { blockOnCrash: block, announceDeadAfter } = claim
      const call = { whileRunning: 'window', keep: 0, announceDeadAfter } as const
      work.saveLane(moveToDeadLetters(work, lane, next.run, { call, reason: 'crashed', block }))
      return { crashed: next.run.id }
    }
    case 'resume': {
      const started = resumeRun(lane, next.run, context)
      work.tables.lanes.put(started)
      return toClaimedRun(work, started, lane.due, 0)
    }
    case 'dead-letter':
      return claimDeadLetter(work, lane, context, found)
    case 'take':
      return claimWaiting(work, lane, next.rank, context)
  }
}

function claimDeadLetter(work: CommitContext, lane: Lane, context: ClaimContext, found: ClaimFindings): ClaimedRun {
  const deadLetter = work.tables.deadLetters.findNextQueued(lane.id)
  if (deadLetter === undefined) {
    found.damaged.push(`Lane ${lane.id} has a queued dead letter that does not exist.`)
    // The dead letter is treated as if it had no events. The lane takes a slot, and the claim continues with the lanes behind it.
    const blank = { id: work.drawRunId(), parent: '', replay: '', events: 0, bytes: 0 }
    const empty = beginDeadLetterRun(lane, blank, context)
    work.tables.lanes.put(empty)
    return { lane: empty, due: lane.due, superseded: 0, placements: [] }
  }
  work.tables.deadLetters.put({ ...deadLetter, state: 'running' })
  const bytes = deadLetter.placements.reduce((sum, placement) => sum + placement.size, 0)
  const { id, parent, replay, placements } = deadLetter
  const started = beginDeadLetterRun(lane, { id, parent, replay, events: placements.length, bytes }, context)
  work.tables.lanes.put(started)
  return toClaimedRun(work, started, lane.due, 0)
}

function claimWaiting(
  work: CommitContext,
  lane: Lane,
  rank: Rank,
  context: ClaimContext & { readonly caps: ClaimRequest },
): ClaimedRun {
  const { caps } = context
  const waits = rank === 0 ? lane.waiting : lane.replays
  const found = work.tables.placements.findFirst(lane, rank, caps.take === 'all' ? caps.maxEvents : waits)
  // A run has the events of one replay.
  const rows = rank === 0 || caps.take !== 'all' ? found : takeWhile(found, (row) => row.replay === found[0]?.replay)
  const taken = caps.take === 'last' ? rows.slice(-1) : rows.slice(0, countEventsToTake(rows, caps))
  const superseded = caps.take === 'all' ? [] : rows.filter((row) => !taken.includes(row))
  const replay = taken[0]?.replay ?? ''
  const started = beginRun(lane, work.drawRunId(), { rank, replay, rows: taken, superseded }, context)
  if (superseded.length > 0) recordSuperseded(work, started, rank, superseded)
  const isFirstReady = caps.maxPerGroup === undefined
  if (isFirstReady && rank === 0 && caps.take === 'all') work.tables.lanes.putWithNewRun(lane, started)
  else work.tables.lanes.put(started)
  return { lane: started, due: lane.due, superseded: superseded.length, placements: taken }
}

function takeWhile<T>(rows: readonly T[], belongs: (row: T) => boolean): readonly T[] {
  const end = rows.findIndex((row) => !belongs(row))
  return end === -1 ? rows : rows.slice(0, end)
}

/** Ends events that `take` passed over. Their own record names the run that replaced them. */
function recordSuperseded(work: CommitContext, lane: Lane, rank: Rank, placements: readonly PlacementRow[]): void {
  const positions = placements.map((row) => row.pos)
  work.tables.placements.remove(lane, rank, positions)
  const run = lane.run
  if (run === undefined) return
  recordRun(
    work,
    lane,
    { ...run, id: work.drawRunId(), parent: run.id },
    { kind: 'superseded', reason: '', placements },
  )
}
