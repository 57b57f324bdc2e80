// Compares the leases in the reply to a claim with those of the model, and takes from them what only the store can
// draw: run ids and tokens.
import type { LeasedRun } from '../../../src/store/contract/index.ts'
import type { Granted } from '../model/claim.ts'
import { textOfBody } from '../model/place.ts'
import { UNSEEN, type ModelLane, type ModelRun } from '../model/state.ts'
import { laneName } from '../settings.ts'
import { demand, expectSame } from '../violation.ts'
import type { World } from '../world.ts'

function shownByModel(world: World, { lane, run, fresh, due }: Granted): object {
  return {
    lane: laneName(lane.id),
    flow: lane.flow,
    key: lane.key,
    tenant: lane.tenant,
    group: lane.group,
    run: fresh || run.id === undefined ? 'a new one' : run.id,
    parent: run.parent,
    rank: run.rank,
    deadLetter: run.deadLetter !== undefined,
    replay: run.replay,
    tries: run.tries,
    lapses: run.lapses,
    failingSince: run.failingSince,
    snoozedSince: run.snoozedSince,
    state64: run.state64,
    due,
    events: run.spots.map((spot) => [spot.event, world.model.events.get(spot.event)?.arrived]),
    superseded: fresh ? run.superseded : 0,
  }
}

function shownByStore(world: World, lease: LeasedRun, granted: Granted | undefined): object {
  const isNew = !world.runIds.has(lease.runId)
  return {
    lane: laneName(lease.lane),
    flow: lease.flow,
    key: lease.key,
    tenant: lease.tenant,
    group: lease.group,
    run: isNew ? 'a new one' : lease.runId,
    parent: granted?.run.parent === UNSEEN && !world.runIds.has(lease.parent) ? UNSEEN : lease.parent,
    rank: lease.rank,
    deadLetter: lease.isDeadLetter,
    replay: lease.replay,
    tries: lease.tries,
    lapses: lease.lapses,
    failingSince: lease.failingSince,
    snoozedSince: lease.snoozedSince,
    state64: lease.stateBase64,
    due: lease.due,
    events: lease.events.map((event) => [event.id, event.arrived]),
    superseded: granted?.fresh === true ? lease.superseded : 0,
  }
}

export function bindLeases(
  world: World,
  granted: readonly Granted[],
  claimed: readonly LeasedRun[],
  budget: number,
): void {
  const predicted = granted.map((one) => shownByModel(world, one))
  const actual = claimed.map((lease, n) => shownByStore(world, lease, granted[n]))
  expectSame('claimed', predicted, actual)
  checkBodies(world, claimed, budget)
  granted.forEach((one, n) => {
    const lease = claimed[n]
    if (lease === undefined) return
    reachOf(world, one)
    world.runIds.add(lease.runId)
    one.run.id = lease.runId
    one.run.token = lease.token
    if (one.run.deadLetter !== undefined) one.run.deadLetter.id = lease.runId
  })
}

function reachOf(world: World, { lane, run, fresh }: Granted): void {
  world.reach(fresh ? 'run: new' : 'run: back')
  const liveIsDue = lane.waiting.some((spot) => spot.rank === 0) && lane.window <= world.model.now
  if (run.rank === 1) world.reach(liveIsDue && fresh ? 'run: replay, its ninth turn' : 'run: replay')
  if (run.deadLetter !== undefined) world.reach('run: dead letter by hand')
  if (run.deadLetter?.blocks === true) world.reach('run: dead letter that blocks its lane')
  if (run.lapses > 0) world.reach(`run: lapsed ${run.lapses}`)
  if (run.parent !== '') world.reach('run: rest of a partial')
  if (fresh && run.left.length > 0) world.reach('run: leaves some over')
  world.reach('run: superseded events', fresh ? run.superseded : 0)
}

function checkBodies(world: World, claimed: readonly LeasedRun[], budget: number): void {
  let bytes = 0
  let missing = 0
  let all = 0
  for (const event of claimed.flatMap((lease) => lease.events)) {
    const original = world.model.events.get(event.id)?.event.body
    all += original?.byteLength ?? 0
    if (event.body === undefined) missing += 1
    else expectSame(`the body of ${event.id}`, textOfBody(original), textOfBody(event.body))
    bytes += event.body?.byteLength ?? 0
  }
  demand(bytes <= budget, `bodies of ${bytes} bytes in an answer of at most ${budget}`)
  demand(missing === 0 || all > budget, `${missing} bodies left out though all fit the budget`)
  world.reach('claim: bodies beyond the budget', missing)
}

function heldRun(lane: ModelLane): ModelRun {
  demand(lane.run !== undefined, 'a lane with a live lease has a run')
  return lane.run
}

export function leasesThatAreLive(_world: World, lanes: readonly ModelLane[]): readonly object[] {
  return lanes.map((lane) => {
    const run = heldRun(lane)
    return { lane: lane.id, run: run.id, token: run.token, events: run.spots.map((spot) => spot.event) }
  })
}
