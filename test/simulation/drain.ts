// The second half of every history: the faults stop, and every acknowledged event must end within a
// bounded number of steps (I3, I10). The model checks each step as before.
import { LEASE, laneName } from './settings.ts'
import { demand } from './violation.ts'
import type { Issued, World } from './world.ts'
import { placeUnrouted, unroutedStep } from './steps/maintenance.ts'
import { issueSteer, learnDeadLetters, deadLettersOf } from './steps/operators.ts'
import { work } from './steps/settle-and-claim.ts'

async function take(issued: Issued | undefined): Promise<void> {
  if (issued !== undefined) await issued.check(await issued.send())
}

/** One process continues; the runs of the others lapse. */
export async function drain(world: World): Promise<void> {
  const lanes = [...world.model.lanes.values()]
  const ids = lanes.filter((lane) => lane.held !== undefined).map((lane) => lane.id)
  if (ids.length > 0) await take(issueSteer(world, { what: 'lanes', ids, act: { kind: 'unhold' } }))
  const paused = [...world.model.paused]
  if (paused.length > 0) await take(issueSteer(world, { what: 'flows', ids: paused, act: { kind: 'resume' } }))
  await drainUnrouted(world)
  const worker = world.process(0)
  const bound = 40 + 4 * world.events.length + 12 * world.model.lanes.size
  for (let steps = 0; pendingLanes(world).length > 0; steps++) {
    demand(steps < bound, `I10: ${pendingLanes(world).join(', ')} not drained after ${bound} steps`)
    await release(world)
    let served = 0
    for (let flow = 0; flow < world.flows.length; flow++) {
      const claim = { flow, slots: 1, failing: 1, suspects: 1 }
      await take(work(world, worker, { outcome: 'done', claim }))
      served += worker.held.length
      await take(work(world, worker, { outcome: 'done', claim: { ...claim, slots: 0 } }))
    }
    if (served === 0) advance(world)
  }
  checkAllEnded(world)
  await checkHistory(world)
}

async function drainUnrouted(world: World): Promise<void> {
  for (let steps = 0; world.model.unrouted.length > 0; steps++) {
    demand(steps < 100, `I10: ${world.model.unrouted.length} unrouted events are still there`)
    world.clock.advance(LEASE)
    const before = world.unrouted.length
    await take(unroutedStep(world, { kind: 'unrouted', n: 100, fewer: false }))
    for (let n = 0; n < world.unrouted.length - before; n++) {
      await take(placeUnrouted(world, { kind: 'place-unrouted', entry: n, key: n, fails: false }))
    }
  }
}

/** Retries blocking dead letters by hand, and ends infinite windows by hand. */
async function release(world: World): Promise<void> {
  await learnDeadLetters(world)
  const blocking = deadLettersOf(world).flatMap((deadLetter) =>
    deadLetter.blocks && deadLetter.state === 'dead' ? (deadLetter.id ?? []) : [],
  )
  if (blocking.length > 0) await take(issueSteer(world, { what: 'dead', ids: blocking, act: 'retry' }))
  const endless = [...world.model.lanes.values()].filter(
    (lane) => lane.run === undefined && lane.waiting.length > 0 && lane.deadline === Number.MAX_SAFE_INTEGER,
  )
  const ids = endless
    .filter((lane) => lane.deadLetters.every((deadLetter) => !deadLetter.blocks))
    .map((lane) => lane.id)
  if (ids.length > 0) await take(issueSteer(world, { what: 'lanes', ids, act: { kind: 'run-now' } }))
}

function pendingLanes(world: World): readonly string[] {
  const lanes = [...world.model.lanes.values()].filter(
    (lane) => lane.waiting.length > 0 || lane.run !== undefined || lane.deadLetters.some((one) => one.state !== 'dead'),
  )
  return lanes.map((lane) => laneName(lane.id))
}

/** Sleeps like a process: until the first deadline, or lease end, that is still to come. */
function advance(world: World): void {
  const now = world.clock.now()
  const deadlines = [...world.model.lanes.values()].map((lane) => lane.deadline).filter((deadline) => deadline > now)
  const next = Math.min(...deadlines)
  if (next < Number.MAX_SAFE_INTEGER) world.clock.advance(next - world.clock.now())
}

/** I1: according to the ledger, which has seen only replies, no acknowledged event is still on its way. */
function checkAllEnded(world: World): void {
  for (const lane of world.ledger.lanes.values()) {
    const { run } = lane
    demand(run === undefined || run.purged, `I1: ${laneName(lane.id)} still has a run`)
    const backInADeadLetter = run !== undefined && run.deadLetter ? run.innocent : []
    const lost = lane.placements
      .filter((one) => one.state === 'waiting' || one.state === 'in a run')
      .filter((one) => !backInADeadLetter.includes(one))
    demand(lost.length === 0, `I1: ${lost.map((one) => one.event).join(', ')} lost in ${laneName(lane.id)}`)
  }
  demand(world.ledger.marked.size === 0, `I1: ${[...world.ledger.marked.keys()].join(', ')} was never placed`)
}

/** Every done or dropped event has a record, in a run of its lane; and nothing else has one. */
async function checkHistory(world: World): Promise<void> {
  if (world.recordsWereRemoved) return
  for (const flow of world.flows) {
    const { items } = await world.store.find({ kind: 'runs', filter: { flow: flow.name }, cursor: '', n: 1000 })
    const onRecord = new Set(
      items.flatMap((run) => {
        const state = run.kind === 'done' || run.kind === 'partial' ? 'done' : run.kind
        return run.events.map((event) => `${run.lane}/${event}/${state}`)
      }),
    )
    for (const lane of world.ledger.lanes.values()) {
      if (lane.flow !== flow.name) continue
      for (const { event, state } of lane.placements) {
        const ended = state === 'done' || state === 'dropped'
        const found = onRecord.has(`${lane.id}/${event}/${state}`)
        demand(!ended || found, `${event} is ${state} in ${laneName(lane.id)}, and no run says so`)
      }
      const done = new Set(lane.placements.filter((one) => one.state === 'done').map((one) => one.event))
      const invented = items.find(
        (run) =>
          run.lane === lane.id &&
          (run.kind === 'done' || run.kind === 'partial') &&
          run.events.some((event) => !done.has(event)),
      )
      demand(invented === undefined, `a run of ${laneName(lane.id)} says something is done that is not`)
    }
  }
}
