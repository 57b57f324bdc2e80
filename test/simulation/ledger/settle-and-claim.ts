// The ledger's check of settle-and-claim: who may settle, what may be claimed, and that no lane is passed over or forgotten.
import type { Millis } from '../../../src/clock.ts'
import type {
  ClaimRequest,
  EventToStore,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'
import { laneName } from '../settings.ts'
import { demand } from '../violation.ts'
import { enter } from './append.ts'
import { checkLease } from './claim.ts'
import { ending } from './ending.ts'
import { isLeased, isSurelyReady, waitingIn, type Ledger, type LedgerLane } from './state.ts'

export interface SeenTurn {
  readonly call: SettleAndClaimCall
  readonly reply: SettleAndClaimReply
  readonly repeated: boolean
}

export function turned(ledger: Ledger, { call, reply, repeated }: SeenTurn): void {
  const { now } = reply
  if (repeated) return checkRepeat(ledger, reply)
  call.settle.forEach((one, n) => {
    const lane = ledger.lanes.get(one.lane)
    const run = lane?.run
    const mine = run !== undefined && run.token === one.token && isLeased(run, now)
    // A purged run whose lease lapsed is over. If the clock jumped back since, only the store knows.
    const perhapsOver = mine && run.purged && run.leaseEnds <= ledger.latest && reply.settled[n] === 'lost'
    const expected = !mine || perhapsOver ? 'lost' : run.purged ? 'purged' : 'ok'
    demand(
      reply.settled[n] === expected,
      `I12: a settlement in ${laneName(one.lane)} is ${reply.settled[n]}, not ${expected}`,
    )
    if (lane === undefined || run === undefined || !mine) return
    if (expected === 'ok') publishedBy(ledger, one.publish, call.routes < reply.routes, now)
    ending(lane, run, one, now)
  })
  for (const { lane: id, run } of reply.crashed)
    crashed(ledger, { id, run, blocks: blocksAfterCrash(call, ledger, id) }, now)
  for (const claim of call.claim) {
    const ready = [...ledger.lanes.values()].filter(
      (lane) => lane.flow === claim.flow && isSurelyReady(ledger, lane, now),
    )
    const leases = reply.claimed.filter((lease) => lease.flow === claim.flow)
    demand(leases.length <= claim.maxRuns, `${leases.length} leases of ${claim.flow} for ${claim.maxRuns} slots`)
    for (const lease of leases) {
      const wasHealthy = lease.tries === 0 && lease.lapses === 0
      checkLease(ledger, lease, claim, now)
      if (wasHealthy) passes(ready, lease.lane, lease.group)
      const index = ready.findIndex((lane) => lane.id === lease.lane)
      if (index >= 0) ready.splice(index, 1)
    }
    const slotsLeft = leases.length < claim.maxRuns && claim.maxPerGroup === undefined
    if (!ledger.paused.has(claim.flow) && slotsLeft) {
      const forgotten = ready[0]
      demand(forgotten === undefined, `I3: ${forgotten && laneName(forgotten.id)} is ready and was not served`)
    }
  }
  for (const [at, head] of reply.nextDeadlines.entries()) checkHead(ledger, head, call.claim[at], now)
}

/** Events that a handler published with old routes are unrouted, not placed. */
function publishedBy(ledger: Ledger, events: readonly EventToStore[], oldRoutes: boolean, now: Millis): void {
  for (const event of events) {
    if (!isNew(ledger, event.identity, now)) continue
    const entry = { flow: '', reason: 'routes-old' as const, error: '' }
    enter(ledger, oldRoutes ? { ...event, placements: [], unrouted: [entry] } : event, now)
  }
}

function isNew(ledger: Ledger, identity: string, now: Millis): boolean {
  const known = ledger.identities.get(identity)
  return known === undefined || known.until <= now
}

/** A repeated reply contains leases that are live, and grants none. */
function checkRepeat(ledger: Ledger, reply: SettleAndClaimReply): void {
  for (const lease of reply.claimed) {
    const run = ledger.lanes.get(lease.lane)?.run
    const same = run?.token === lease.token && run.id === lease.runId && isLeased(run, reply.now)
    demand(same, `I13: a repeated request claims ${laneName(lease.lane)} anew`)
  }
}

function blocksAfterCrash(call: SettleAndClaimCall, ledger: Ledger, lane: string): boolean {
  return call.claim.some((claim) => claim.blockOnCrash && claim.flow === ledger.lanes.get(lane)?.flow)
}

type Crash = { readonly id: string; readonly run: string; readonly blocks: boolean }

function crashed(ledger: Ledger, found: Crash, now: Millis): void {
  const lane = ledger.lanes.get(found.id)
  const run = lane?.run
  const lapsed = run !== undefined && run.leaseEnds > 0 && run.leaseEnds <= now && (run.id ?? found.run) === found.run
  demand(
    lapsed && run.lapses === 3,
    `L12: ${laneName(found.id)} is said to have crashed, but its fourth lease has not lapsed`,
  )
  if (lane === undefined) return
  const blocked = lane.deadLetters.get(found.run)?.blocks ?? false
  for (const item of run.items) item.state = 'dead'
  lane.deadLetters.set(found.run, {
    items: run.items,
    parent: run.parent,
    blocks: blocked || found.blocks,
    queued: false,
  })
  lane.run = undefined
  lane.lastEnd = Math.max(lane.lastEnd, now)
}

/** I9: while a lane is ready, each other lane of its group is served before it at most once. */
function passes(ready: readonly LedgerLane[], served: string, group: string): void {
  for (const lane of ready) {
    if (lane.id === served || lane.group !== group) continue
    const times = (lane.passedBy.get(served) ?? 0) + 1
    demand(times <= 1, `I9: ${laneName(served)} is served twice while ${laneName(lane.id)} is ready`)
    lane.passedBy.set(served, times)
  }
}

/** I3: the process is woken for the first lane that waits for time. */
function checkHead(
  ledger: Ledger,
  head: { readonly flow: string; readonly due: Millis | undefined },
  claim: ClaimRequest | undefined,
  now: Millis,
): void {
  if (ledger.paused.has(head.flow) || now < ledger.latest || claim === undefined) return
  // A lane with a run may have a health for which the claim had no slots; a lane without one is healthy.
  const allLines = claim.maxRuns === 0 || (claim.maxFailing > 0 && claim.maxSuspects > 0)
  for (const lane of ledger.lanes.values()) {
    if (lane.flow !== head.flow || lane.held || lane.unsure || !(allLines || lane.run === undefined)) continue
    const by = wakesBy(lane)
    // A process that is woken now is woken for everything that is due.
    const wakes = by === undefined || (head.due !== undefined && head.due <= Math.max(by, now))
    demand(wakes, `I3: ${laneName(lane.id)} waits for ${by}, but the head of ${head.flow} is ${head.due}`)
  }
}

function wakesBy(lane: LedgerLane): Millis | undefined {
  if (lane.run !== undefined) return lane.run.leaseEnds > 0 ? lane.run.leaseEnds : lane.run.notBefore
  if ([...lane.deadLetters.values()].some((deadLetter) => deadLetter.blocks || deadLetter.queued)) return undefined
  const live = waitingIn(lane, 0)
  const caps = live.map((one) => one.cap).filter((cap) => cap < Number.MAX_SAFE_INTEGER)
  const replays = waitingIn(lane, 1).map((one) => one.arrival)
  if (caps.length + replays.length === 0) return undefined
  return Math.max(lane.lastEnd, Math.min(...caps, ...replays))
}
