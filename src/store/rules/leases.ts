// What a claim hands out, and what its holder may ask for while it works (L1, L6c).
import { later } from '../../clock.ts'
import { arm, isLive, type Lane, type Run } from '../../model/lane.ts'
import type { ClaimedEvent, Lease, RenewCall, RenewReply } from '../contract/index.ts'
import { placesOf } from './settle.ts'
import type { PlacedEvent, PlaceRow } from './tables.ts'
import type { Work } from './work.ts'

/** One answer carries at most so many bytes of bodies; the first always goes along, however big. */
export class BodyBudget {
  #left: number
  #used = false

  constructor(bytes: number) {
    this.#left = bytes
  }

  admits(body: Uint8Array): boolean {
    if (this.#used && body.length > this.#left) return false
    this.#used = true
    this.#left -= body.length
    return true
  }
}

/** A run that was given out, before its events are looked up. */
export interface Handed {
  readonly lane: Lane
  readonly due: number
  readonly superseded: number
  readonly places: readonly PlaceRow[]
}

export function handed(work: Work, lane: Lane, due: number, superseded: number): Handed {
  const places = lane.run === undefined || lane.run.purged ? [] : placesOf(work, lane, lane.run)
  return { lane, due, superseded, places }
}

/** The events of all of them are read in one go. */
export function leasesOf(work: Work, runs: readonly Handed[], budget: BodyBudget): readonly Lease[] {
  const places = runs.flatMap((run) => run.places)
  const events = new Map(work.tables.events.at(places).map((event) => [event.seq, event]))
  const hand = (event: PlacedEvent): ClaimedEvent => {
    // Another lane may hold the same event: it gets bytes of its own.
    if (places.length > events.size) events.set(event.seq, { ...event, body: event.body.slice() })
    return claimedEvent(event, budget)
  }
  const leases: Lease[] = []
  for (const one of runs) {
    const { run } = one.lane
    if (run === undefined) continue
    const claimed: ClaimedEvent[] = []
    for (const place of one.places) {
      const event = events.get(place.event)
      if (event !== undefined) claimed.push(hand(event))
    }
    leases.push(leaseOf(one, run, claimed))
  }
  return leases
}

function leaseOf({ lane, due, superseded }: Handed, run: Run, events: readonly ClaimedEvent[]): Lease {
  return {
    lane: lane.id,
    flow: lane.flow,
    key: lane.key,
    tenant: lane.tenant,
    group: lane.group,
    run: run.id,
    parent: run.parent,
    token: run.token,
    rank: run.rank,
    letter: run.letter,
    tries: run.tries,
    lapses: run.lapses,
    failingSince: run.failingSince,
    againSince: run.againSince,
    state64: run.state64,
    due,
    until: run.until,
    events,
    superseded,
  }
}

function claimedEvent(event: PlacedEvent, budget: BodyBudget): ClaimedEvent {
  const { id, source, type, time, tenant, subject, attributes, arrived, body } = event
  return { id, source, type, time, tenant, subject, attributes, arrived, body: budget.admits(body) ? body : undefined }
}

export function renew(work: Work, call: RenewCall): RenewReply['results'] {
  return call.runs.map(({ lane: id, token, commit }) => {
    const lane = work.tables.lanes.get(id)
    const run = lane?.run
    if (lane === undefined || run === undefined || run.token !== token || !isLive(run, work.now)) return 'lost'
    const committed = run.committed || (commit && !run.cancel)
    const until = later(work.now, call.lease)
    work.tables.lanes.put(arm({ ...lane, run: { ...run, until, committed } }, work.draw, 'if-moved'))
    return run.purged ? 'purged' : run.cancel ? 'cancel' : 'ok'
  })
}
