// What a purge removes in the reference model (L15). Other events of a run with a purged event
// stay: they return to their lane when the run ends. Between attempts, they continue at once as another run, because a
// different set of events has a different id. A dead letter keeps its id, by which operators know it, and is dead
// again if its run was purged in part. The reason of a dead letter may quote one of its events, and is removed with that event.
import { PURGED_TEXT } from '../../../src/model/steer.ts'
import type { PurgeTarget } from '../../../src/store/contract/index.ts'
import { UNSEEN, isLive, isPending, least, liveSpots, runEnded, setDeadline } from './state.ts'
import type { Letter, Model, ModelLane, ModelRun, Spot } from './state.ts'

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
  for (const letter of lane.letters) purgeReason(letter, isPurged)
  const inLetters = lane.letters.flatMap((letter) => letter.spots)
  const inRun = lane.run === undefined ? [] : [...lane.run.spots, ...lane.run.innocent]
  const touched = [...lane.waiting, ...inLetters, ...inRun].some(isPurged)
  const caps = liveSpots(lane)
    .filter((spot) => isPurged(spot) && !spot.isLeftOver)
    .map((spot) => spot.cap)
  lane.strayCap = least([...caps, lane.strayCap])
  lane.waiting = lane.waiting.filter((spot) => !isPurged(spot))
  for (const letter of lane.letters) letter.spots = letter.spots.filter((spot) => !isPurged(spot))
  lane.letters = lane.letters.filter((letter) => letter.state === 'running' || letter.spots.length > 0)
  const { run } = lane
  if (run !== undefined && run.innocent.some(isPurged)) purgeInnocent(model, lane, run, isPurged)
  if (run !== undefined && run.spots.some(isPurged)) purgeRun(model, lane, run, isPurged)
  if (touched) setDeadline(model, lane, false)
}

function purgeReason(letter: Letter, isPurged: IsPurged): void {
  if (letter.reason === 'crashed') return
  if (letter.spots.some(isPurged)) letter.reason = PURGED_TEXT
  else if ([...letter.family].some((event) => isPurged({ event }))) letter.mayHaveLostReason = true
}

/** A purged run loses more of its events. If its lease has lapsed and no event is left, the run is removed. */
function purgeInnocent(model: Model, lane: ModelLane, run: ModelRun, isPurged: IsPurged): void {
  run.innocent = run.innocent.filter((spot) => !isPurged(spot))
  if (isLive(run, model.now) || run.innocent.length > 0) return
  runEnded(model, lane, { whileRunning: 'window', keep: 0 })
}

function purgeRun(model: Model, lane: ModelLane, run: ModelRun, isPurged: IsPurged): void {
  const rest = run.spots.filter((spot) => !isPurged(spot))
  const { letter } = run
  if (letter !== undefined) letter.spots = rest
  if (rest.length === 0 && !isLive(run, model.now)) lane.letters = lane.letters.filter((other) => other !== letter)
  if (isLive(run, model.now)) {
    run.innocent = letter === undefined ? rest : []
    run.spots = []
    run.purged = true
  } else if (rest.length > 0 && letter === undefined) {
    lane.run = { ...run, id: undefined, parent: run.id ?? UNSEEN, spots: rest }
  } else {
    if (letter !== undefined) letter.state = 'dead'
    runEnded(model, lane, { whileRunning: 'window', keep: 0 })
  }
}
