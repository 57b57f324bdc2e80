// Processes settle, claim and renew, with tokens that are valid, stale or used, and repeat calls without a reply.
import type {
  ClaimRequest,
  LeasedRun,
  Settlement,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'
import { computeIdentity } from '../../../src/model/identity.ts'
import type { ClaimPick, Command, SettlePick } from '../commands.ts'
import { turned } from '../ledger/settle-and-claim.ts'
import { turn, type ModelTurn } from '../model/settle-and-claim.ts'
import { FLOWS, flowNamed, laneName, placeIn } from '../settings.ts'
import { demand, expectSame, Violation } from '../violation.ts'
import type { Issued, Process, World } from '../world.ts'
import { bindLeases, leasesThatAreLive } from './leases.ts'
import { outcomeOf } from './outcome.ts'

type Of<K extends Command['kind']> = Extract<Command, { readonly kind: K }>

const SMALL_BUDGET = 9

function claimOf(world: World, pick: ClaimPick): ClaimRequest {
  const flow = world.flow(pick.flow)
  const { slots, failing, suspects } = pick
  return {
    ...flow.caps,
    flow: flow.name,
    maxRuns: slots,
    maxFailing: failing,
    maxSuspects: suspects,
    maxPerGroup: flow.perGroup,
    blockOnCrash: flow.block,
  }
}

function settleOf(world: World, lease: LeasedRun, pick: SettlePick): Settlement {
  const flow = flowNamed(lease.flow)
  const outcome = outcomeOf(lease, pick, flow)
  const failed = outcome.kind === 'retry' || outcome.kind === 'dead' || outcome.kind === 'partial'
  return {
    ...flow.end,
    lane: lease.lane,
    token: lease.token,
    outcome,
    attempt: failed ? { at: world.clock.now(), ms: 1, error: 'it failed' } : undefined,
    publish: pick.publish ? [published(world, lease, pick.number)] : [],
  }
}

/** The ids of published events follow from the run: a second attempt publishes the same, or the same id with other bytes. */
function published(world: World, lease: LeasedRun, words: number): Settlement['publish'][number] {
  const event = world.bareEvent(lease.tenant, words % 3 === 0 ? 'told' : 'said')
  const key = Number(lease.key.slice(1))
  const target = world.flows.at(-1) ?? FLOWS[0]
  demand(target !== undefined, 'there are flows')
  const name = computeIdentity('simulation', lease.tenant, `${lease.runId}/0`)
  return { ...event, identity: name, placements: [placeIn(target, key, 0)] }
}

function leaseFor(world: World, process: Process, pick: SettlePick): LeasedRun | undefined {
  const from = pick.stale ? world.spent : process.held
  return from[pick.lease % from.length]
}

export function turnStep(world: World, command: Of<'turn'>): Issued {
  const process = command.settles.length > 0 ? world.holder(command.who) : world.process(command.who)
  const settles = command.settles.flatMap((pick) => {
    const lease = leaseFor(world, process, pick)
    return lease === undefined ? [] : [settleOf(world, lease, pick)]
  })
  const flows = new Set<string>()
  const claims = command.claims
    .map((pick) => claimOf(world, pick))
    .filter((claim) => !flows.has(claim.flow) && flows.add(claim.flow))
  return issueTurn(world, process, {
    process: process.name,
    request: ++process.request,
    routes: world.model.routes - (command.oldRoutes ? 1 : 0),
    settle: settles,
    claim: claims,
    budget: command.smallBudget ? SMALL_BUDGET : 1_000_000,
  })
}

export function workStep(world: World, command: Of<'work'>): Issued {
  return work(world, world.holder(command.who), command)
}

/** All runs of the process end in the same way, and it claims. */
export function work(world: World, process: Process, how: Pick<Of<'work'>, 'outcome' | 'claim'>): Issued {
  const pick = { lease: 0, stale: false, outcome: how.outcome, number: 1, publish: false }
  return issueTurn(world, process, {
    process: process.name,
    request: ++process.request,
    routes: world.model.routes,
    settle: process.held.map((lease) => settleOf(world, lease, pick)),
    claim: [claimOf(world, how.claim)],
    budget: 1_000_000,
  })
}

export function repeatTurn(world: World, who: number, older: boolean): Issued | undefined {
  const process = world.process(who)
  const last = process.lastTurn
  if (last === undefined) return undefined
  return issueTurn(world, process, older ? { ...last, request: last.request - 1 } : last)
}

type Answered = { readonly refused: string } | SettleAndClaimReply

/** A rejection is a reply too. */
async function sent(world: World, call: SettleAndClaimCall): Promise<Answered> {
  try {
    return await world.store.settleAndClaim(call)
  } catch (error) {
    if (error instanceof Error && 'code' in error && typeof error.code === 'string') return { refused: error.code }
    throw error
  }
}

function issueTurn(world: World, process: Process, call: SettleAndClaimCall): Issued {
  return {
    label: labelOf(call),
    send: () => sent(world, call),
    check: (answer) => checkTurn(world, process, call, answer as Answered),
  }
}

function labelOf(call: SettleAndClaimCall): string {
  const settles = call.settle.map((one) => `${laneName(one.lane)} ${JSON.stringify(one.outcome)}`)
  const claims = call.claim.map(
    (one) => `${one.flow}×${one.maxRuns}(failing ${one.maxFailing}, suspects ${one.maxSuspects})`,
  )
  return `${call.process}#${call.request} settles [${settles.join('; ')}] claims [${claims.join(', ')}]`
}

function checkTurn(world: World, process: Process, call: SettleAndClaimCall, answer: Answered): void {
  world.model.now = world.clock.now()
  const dissolvedBefore = world.model.dissolved
  const predicted = turn(world.model, call)
  world.reach('run: dissolved', world.model.dissolved - dissolvedBefore)
  if ('refused' in answer || predicted.kind === 'stale') {
    const refusal = 'refused' in answer ? answer.refused : 'an answer'
    if (predicted.kind !== 'stale') throw new Violation(`turn was refused with ${refusal}`)
    expectSame('a request of a lower number is refused', 'REQUEST_STALE', refusal)
    return world.reach('turn: stale request')
  }
  world.checkReply(answer)
  expectSame('settled', predicted.settled, answer.settled)
  expectSame('kept out', predicted.keptOut, answer.unstored)
  for (const { result } of answer.unstored) world.reach(`publish: ${result.kind}`)
  if (predicted.kind === 'repeated') checkRepeated(world, predicted, answer, call)
  else checkTaken(world, predicted, answer, { call, process })
  expectSame('heads', predicted.heads, answer.nextDeadlines)
  noteTurn(world, answer)
}

function noteTurn(world: World, { settled, claimed, crashed }: SettleAndClaimReply): void {
  const leases = claimed.map((lease) => {
    const events = lease.events.map((event) => event.id.slice(-3)).join()
    return `${laneName(lease.lane)} [${events}] rank ${lease.rank} tries ${lease.tries} lapses ${lease.lapses}`
  })
  world.note(`settled [${settled.join()}] claimed [${leases.join('; ')}] crashed ${crashed.length}`)
}

function checkRepeated(
  world: World,
  predicted: Extract<ModelTurn, { kind: 'repeated' }>,
  reply: SettleAndClaimReply,
  call: SettleAndClaimCall,
): void {
  world.reach('turn: repeated')
  const still = leasesThatAreLive(world, predicted.lanes)
  const shown = reply.claimed.map((lease) => ({
    lane: lease.lane,
    run: lease.runId,
    token: lease.token,
    events: lease.events.map((event) => event.id),
  }))
  expectSame('a repeated request claims', still, shown)
  world.reach('turn: repeated with leases', still.length)
  turned(world.ledger, { call, reply, repeated: true })
}

function checkTaken(
  world: World,
  predicted: Extract<ModelTurn, { kind: 'taken' }>,
  reply: SettleAndClaimReply,
  from: { readonly call: SettleAndClaimCall; readonly process: Process },
): void {
  const { call, process } = from
  bindLeases(world, predicted.granted, reply.claimed, call.budget)
  const crashed = predicted.crashed.map(({ lane, deadLetter }, n) => {
    // The rest of a run that a purge cut may crash before any claim has shown its id.
    const shown = reply.crashed[n]?.run
    if (deadLetter.id === undefined && shown !== undefined && !world.runIds.has(shown)) deadLetter.id = shown
    if (shown !== undefined) world.runIds.add(shown)
    return { lane: lane.id, run: deadLetter.id }
  })
  expectSame('crashed', crashed, reply.crashed)
  world.reach('run: crashed', crashed.length)
  turned(world.ledger, { call, reply, repeated: false })
  world.model.requests.set(call.process, {
    request: call.request,
    settled: reply.settled,
    keptOut: reply.unstored,
    tokens: reply.claimed.map((lease) => lease.token),
  })
  process.lastTurn = call
  call.settle.forEach((one, n) => world.reach(`settle: ${one.outcome.kind} ${reply.settled[n]}`))
  for (const other of world.processes) {
    const ended = other.held.filter((lease) => call.settle.some((one) => one.token === lease.token))
    world.spent.push(...ended)
    other.held = other.held.filter((lease) => !ended.includes(lease))
  }
  process.held.push(...reply.claimed)
}
