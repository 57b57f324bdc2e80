// What a purge removes in the reference model (L15). Other events of a run with a purged event
// stay: they return to their lane when the run ends. Between attempts, they continue at once as another run, because a
// different set of events has a different id. A dead letter keeps its id, by which operators know it, and is dead
// again if its run was purged in part. The reason of a dead letter may quote one of its events, and is removed with that event.
import { PURGED_TEXT } from '../../../src/model/steer.ts'
import type { PurgeTarget } from '../../../src/store/contract/index.ts'
import { UNSEEN, isLive, isPending, least, liveSpots, runEnded, setDeadline } from './state.ts'
import type { ModelDeadLetter, Model, ModelLane, ModelRun, Spot } from './state.ts'

/** What the simulation purges by. */
export type Purged = Exclude<PurgeTarget, { readonly kind: 'subject' }>

export function purge(model: Model, what: Purged): void {
  const lanes = [...model.lanes.values()]
  switch (what.kind) {
    case 'lanes':
      for (const lane of lanes) if (what.ids.includes(lane.id)) purgeLane(model, lane, () => true)
      for (const [id, known] of model.events) {
        const wasThere = what.ids.some((lane) => known.lanes.has(lane))
        if (wasThere && known.gone !== 'yes') known.gone = isPending(model, id) ? 'perhaps' : 'yes'
      }
      break
    case 'tenant':
      for (const [id, known] of model.events) if (known.event.tenant === what.tenant) purgeEvent(model, id)
      break
    case 'event':
      purgeEvent(model, what.id)
      break
  }
}

function purgeEvent(model: Model, id: string): void {
  const known = model.events.get(id)
  if (known === undefined) return
  known.gone = 'yes'
  model.unrouted = model.unrouted.filter((entry) => entry.event !== id)
  // Lanes are freed in the order in which the event entered them.
  for (const lane of known.lanes) purgeLane(model, model.lanes.get(lane), (spot) => spot.event === id)
}

type IsPurged = (spot: Pick<Spot, 'event'>) => boolean

function purgeLane(model: Model, lane: ModelLane | undefined, isPurged: IsPurged): void {
  if (lane === undefined) return
  for (const deadLetter of lane.deadLetters) purgeReason(deadLetter, isPurged)
  const inDeadLetters = lane.deadLetters.flatMap((deadLetter) => deadLetter.spots)
  const inRun = lane.run === undefined ? [] : [...lane.run.spots, ...lane.run.innocent]
  const touched = [...lane.waiting, ...inDeadLetters, ...inRun].some(isPurged)
  const caps = liveSpots(lane)
    .filter((spot) => isPurged(spot) && !spot.isLeftOver)
    .map((spot) => spot.cap)
  lane.strayCap = least([...caps, lane.strayCap])
  lane.waiting = lane.waiting.filter((spot) => !isPurged(spot))
  for (const deadLetter of lane.deadLetters) deadLetter.spots = deadLetter.spots.filter((spot) => !isPurged(spot))
  lane.deadLetters = lane.deadLetters.filter(
    (deadLetter) => deadLetter.state === 'running' || deadLetter.spots.length > 0,
  )
  const { run } = lane
  if (run !== undefined && run.innocent.some(isPurged)) purgeInnocent(model, lane, run, isPurged)
  if (run !== undefined && run.spots.some(isPurged)) purgeRun(model, lane, run, isPurged)
  if (touched) setDeadline(model, lane, false)
}

function purgeReason(deadLetter: ModelDeadLetter, isPurged: IsPurged): void {
  if (deadLetter.reason === 'crashed') return
  if (deadLetter.spots.some(isPurged)) deadLetter.reason = PURGED_TEXT
  else if ([...deadLetter.family].some((event) => isPurged({ event }))) deadLetter.mayHaveLostReason = true
}

/** A purged run loses more of its events. If its lease has lapsed and no event is left, the run is removed. */
function purgeInnocent(model: Model, lane: ModelLane, run: ModelRun, isPurged: IsPurged): void {
  run.innocent = run.innocent.filter((spot) => !isPurged(spot))
  if (isLive(run, model.now) || run.innocent.length > 0) return
  runEnded(model, lane, { whileRunning: 'window', keep: 0 })
}

function purgeRun(model: Model, lane: ModelLane, run: ModelRun, isPurged: IsPurged): void {
  const rest = run.spots.filter((spot) => !isPurged(spot))
  const { deadLetter } = run
  if (deadLetter !== undefined) deadLetter.spots = rest
  if (rest.length === 0 && !isLive(run, model.now))
    lane.deadLetters = lane.deadLetters.filter((other) => other !== deadLetter)
  if (isLive(run, model.now)) {
    run.innocent = deadLetter === undefined ? rest : []
    run.spots = []
    run.purged = true
  } else if (rest.length > 0 && deadLetter === undefined) {
    lane.run = { ...run, id: undefined, parent: run.id ?? UNSEEN, spots: rest }
  } else {
    if (deadLetter !== undefined) deadLetter.state = 'dead'
    runEnded(model, lane, { whileRunning: 'window', keep: 0 })
  }
}
