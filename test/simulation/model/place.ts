// How events enter lanes in the reference model: append, place, publish (L2, L3, L4, L6c, L10, L16, L18).
import { addDelay } from '../../../src/clock.ts'
import type {
  AppendCall,
  AppendResult,
  UnroutedFlow,
  EventToStore,
  Placement,
} from '../../../src/store/contract/index.ts'
import { canBeCancelled, capOfWindow, laneFor, liveSpots, replaySpots, setDeadline } from './state.ts'
import type { Model, ModelLane, Spot } from './state.ts'

/** The store chooses the text of an error that it finds itself. */
export const ANY_ERROR = '*'

export function textOfBody(body: Uint8Array | undefined): string {
  return body === undefined ? 'none' : Buffer.from(body).toString('latin1')
}

/** When the waiting live events should run, now that `spot` is the last of them. */
function windowWith(model: Model, lane: ModelLane, spot: Spot, place: Placement): number {
  const before = liveSpots(lane)
  if (before.length > 0 && lane.window <= model.now) return lane.window
  if (isFull([...before, spot], place)) return model.now
  if (place.leading && before.length === 0 && lane.run === undefined && !ranLately(model, lane, place.quiet)) {
    return model.now
  }
  return Math.min(addDelay(model.now, place.quiet), spot.cap, capOfWindow(lane))
}

function isFull(spots: readonly Spot[], { maxEvents, maxBytes }: Placement): boolean {
  const bytes = spots.reduce((sum, one) => sum + one.size, 0)
  return spots.length >= maxEvents || bytes >= maxBytes
}

function ranLately(model: Model, lane: ModelLane, quiet: number): boolean {
  if (lane.ended === undefined || lane.ended.at + lane.ended.keep <= model.now) return false
  return model.now - lane.ended.at < quiet
}

export function placeLive(model: Model, event: EventToStore, place: Placement): void {
  const lane = laneFor(model, place, event.tenant)
  const spot: Spot = {
    event: event.id,
    rank: 0,
    replay: '',
    position: ++model.counter,
    arrival: model.now,
    cap: addDelay(model.now, place.max),
    size: event.body.byteLength,
    isLeftOver: false,
  }
  lane.window = windowWith(model, lane, spot, place)
  lane.waiting = [...lane.waiting, spot]
  const { run } = lane
  if (run !== undefined && canBeCancelled(run, model.now))
    run.full ||= isFull([...liveSpots(lane), ...run.spots], place)
  if (place.cancel && run !== undefined && canBeCancelled(run, model.now) && run.earliestCap > model.now)
    run.asked = true
  model.events.get(event.id)?.lanes.add(lane.id)
  setDeadline(model, lane, false)
}

export function placeReplay(model: Model, event: EventToStore, place: Placement, replay: string): void {
  const lane = laneFor(model, place, event.tenant)
  const spot: Spot = {
    event: event.id,
    rank: 1,
    replay,
    position: ++model.counter,
    arrival: model.now,
    cap: model.now,
    size: event.body.byteLength,
    isLeftOver: false,
  }
  lane.replaysDue = replaySpots(lane).length === 0 ? model.now : Math.min(lane.replaysDue, model.now)
  lane.waiting = [...lane.waiting, spot]
  model.events.get(event.id)?.lanes.add(lane.id)
  setDeadline(model, lane, false)
}

export function addUnrouted(model: Model, event: string, entry: UnroutedFlow, after: number): void {
  model.unrouted = [
    ...model.unrouted,
    {
      event,
      flow: entry.flow,
      reason: entry.reason,
      error: entry.error,
      order: ++model.counter,
      id: undefined,
      token: 0,
      due: addDelay(model.now, after),
    },
  ]
}

function known(model: Model, event: EventToStore): AppendResult | undefined {
  // A repeated call after a lost reply: the event itself is stored, however long ago.
  const first = model.identities.get(event.identity)
  const forgotten = first === undefined || first.until <= model.now
  // A forgotten identity stays forgotten, even if the clock jumps back.
  if (forgotten) model.identities.delete(event.identity)
  const sameId = model.events.has(event.id)
  if (sameId) return { kind: 'repeated' }
  if (forgotten) return undefined
  const original = model.events.get(first.event)
  if (original !== undefined) original.duplicates += 1
  return { kind: first.body === textOfBody(event.body) ? 'duplicate' : 'conflict', of: first.event }
}

/** Stores one event like `append`, without checking the routes. */
export function store(model: Model, event: EventToStore): AppendResult {
  const before = known(model, event)
  if (before !== undefined) return before
  const until = addDelay(model.now, event.dedupeFor)
  model.identities.set(event.identity, { event: event.id, body: textOfBody(event.body), until })
  model.events.set(event.id, { event, arrived: model.now, lanes: new Set(), gone: 'no', duplicates: 0 })
  const seen = new Set<string>()
  for (const place of event.placements) {
    if (!seen.has(place.lane)) placeLive(model, event, place)
    seen.add(place.lane)
  }
  for (const entry of event.unrouted) addUnrouted(model, event.id, entry, 0)
  return { kind: 'stored' }
}

export function append(model: Model, call: AppendCall): readonly AppendResult[] {
  return call.events.map((event) => (call.routes < model.routes ? { kind: 'routes-old' } : store(model, event)))
}
