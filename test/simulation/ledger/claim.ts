// The ledger's check of one lease: one at a time, and either the same run again or a new one from the front of the lane
// (I2, I8, I17, I20, I21).
import { addDelay, type Millis } from '../../../src/clock.ts'
import type { ClaimRequest, LeasedRun } from '../../../src/store/contract/index.ts'
import { laneName } from '../settings.ts'
import { demand } from '../violation.ts'
import { UNSEEN, endAll, isLeased, waitingIn } from './state.ts'
import type { Ledger, LedgerLane, LedgerRun, Placement } from './state.ts'

function idsOf(items: readonly Placement[]): string {
  return items.map((item) => item.event).join()
}

export function checkLease(ledger: Ledger, lease: LeasedRun, claim: ClaimRequest, now: Millis): void {
  const lane = ledger.lanes.get(lease.lane)
  const name = laneName(lease.lane)
  demand(lane !== undefined, `${name} was never placed in`)
  demand(!ledger.paused.has(lane.flow), `L14: ${name} is served although its flow is paused`)
  demand(lease.token > ledger.lastToken, `I2: token ${lease.token} comes after ${ledger.lastToken}`)
  ledger.lastToken = lease.token
  const perhapsOver = lane.run?.purged === true && lane.run.leaseEnds <= ledger.latest
  demand(lane.run === undefined || perhapsOver || !isLeased(lane.run, now), `I2: ${name} has two live runs`)
  const before = lane.run?.maybeDissolved === true && lane.run.id !== lease.runId ? dissolved(lane, lane.run) : lane.run
  const run = before === undefined || before.purged ? begun(ledger, lane, lease, claim) : back(lane, before, lease, now)
  run.token = lease.token
  run.leaseEnds = addDelay(now, claim.lease)
  run.notBefore = 0
  run.tries = lease.tries
  run.lapses = lease.lapses
  run.maybeDissolved = false
  lane.run = run
  lane.unsure = false
  lane.passedBy.clear()
  ledger.runIds.add(lease.runId)
}

function dissolved(lane: LedgerLane, run: LedgerRun): undefined {
  endAll(run.items, 'waiting')
  lane.run = undefined
}

/** A run that failed, lapsed or was given back returns with the same id and events, and not too early. */
function back(lane: LedgerLane, run: LedgerRun, lease: LeasedRun, now: Millis): LedgerRun {
  const name = laneName(lane.id)
  const isRest = run.id === undefined && (run.parent === UNSEEN || lease.parent === run.parent)
  demand(isRest || lease.runId === run.id, `I21: ${name} comes back as another run`)
  const events = lease.events.map((event) => event.id).join()
  demand(events === idsOf(run.items), `I8: ${name} comes back with ${events} instead of ${idsOf(run.items)}`)
  demand(now >= run.notBefore, `I17: ${name} is tried at ${now}, before ${run.notBefore}`)
  const lapsed = run.leaseEnds > 0
  demand(lease.lapses === run.lapses + (lapsed ? 1 : 0), `L12: ${name} has ${lease.lapses} lapses after ${run.lapses}`)
  demand(lease.tries === run.tries, `L12: ${name} has ${lease.tries} tries after ${run.tries}`)
  demand(lease.lapses < 4, `L12: ${name} runs after its fourth lapse`)
  run.id = lease.runId
  const deadLetter = lane.deadLetters.get(`again of ${lease.parent}`)
  if (deadLetter !== undefined) lane.deadLetters.set(lease.runId, deadLetter)
  lane.deadLetters.delete(`again of ${lease.parent}`)
  return run
}

function begun(ledger: Ledger, lane: LedgerLane, lease: LeasedRun, claim: ClaimRequest): LedgerRun {
  if (lane.run !== undefined) {
    endAll(lane.run.innocent, lane.run.deadLetter ? 'dead' : 'waiting')
    lane.run = undefined
  }
  const items = lease.isDeadLetter ? fromDeadLetter(lane, lease) : fromLine(ledger, lane, lease, claim)
  endAll(items, 'in a run')
  return {
    id: lease.runId,
    parent: lease.parent,
    items,
    token: 0,
    leaseEnds: 0,
    notBefore: 0,
    lapses: 0,
    tries: 0,
    deadLetter: lease.isDeadLetter,
    maybeDissolved: false,
    purged: false,
    innocent: [],
  }
}

function fromDeadLetter(lane: LedgerLane, lease: LeasedRun): readonly Placement[] {
  const name = laneName(lane.id)
  const known = lane.deadLetters.get(lease.runId) ?? lane.deadLetters.get(`rest of ${lease.parent}`)
  demand(known !== undefined && known.queued, `L9: a dead letter of ${name} runs that was not queued`)
  if (!lane.deadLetters.has(lease.runId)) {
    lane.deadLetters.delete(`rest of ${lease.parent}`)
    lane.deadLetters.set(lease.runId, known)
  }
  known.queued = false
  const events = lease.events.map((event) => event.id).join()
  demand(events === idsOf(known.items), `I21: the dead letter of ${name} runs with ${events}`)
  demand(lease.tries === 0 && lease.lapses === 0, `L9: a dead letter queued by hand starts with ${lease.tries} tries`)
  return known.items
}

/** A new run takes the front of its lane: it omits and repeats no event, and keeps the order of arrival. */
function fromLine(ledger: Ledger, lane: LedgerLane, lease: LeasedRun, claim: ClaimRequest): readonly Placement[] {
  const name = laneName(lane.id)
  demand(!ledger.runIds.has(lease.runId), `I21: ${name} begins a run under the old id ${lease.runId}`)
  demand(
    ![...lane.deadLetters.values()].some((deadLetter) => deadLetter.blocks),
    `L9: ${name} runs although a dead letter blocks it`,
  )
  const line = waitingIn(lane, lease.rank).toSorted((a, b) => a.order - b.order)
  const n = lease.events.length
  const front = claim.take === 'last' ? line.slice(-1) : line.slice(0, n)
  const events = lease.events.map((event) => event.id).join()
  demand(n > 0 && events === idsOf(front), `I1, I20: ${name} takes ${events} of the line ${idsOf(line)}`)
  demand(n <= claim.maxEvents, `L7: ${name} takes ${n} events at once`)
  if (claim.take !== 'all')
    endAll(
      line.filter((item) => !front.includes(item)),
      'superseded',
    )
  return front
}
