// The ledger's check of appends: an acknowledged event is placed or unrouted, and an identity is stored once (I1, I14).
import { addDelay, type Millis } from '../../../src/clock.ts'
import type { AppendCall, AppendResult, EventToStore, Placement } from '../../../src/store/contract/index.ts'
import { demand } from '../violation.ts'
import { ledgerLane, type Ledger } from './state.ts'

export function appended(
  ledger: Ledger,
  seen: { readonly call: AppendCall; readonly results: readonly AppendResult[]; readonly now: Millis },
): void {
  const { call, results, now } = seen
  demand(results.length === call.events.length, 'append answers for each event')
  call.events.forEach((event, n) => {
    const result = results[n]
    if (result === undefined) return
    const first = ledger.identities.get(event.identity)
    // A forgotten identity stays forgotten, even if the clock jumps back.
    if (first !== undefined && first.until <= now) ledger.identities.delete(event.identity)
    const known = (first !== undefined && first.until > now) || ledger.stored.has(event.id)
    if (result.kind === 'stored') {
      demand(!known, `I14: ${event.id} was stored although ${first?.event} has its identity`)
      enter(ledger, event, now)
    } else if (result.kind === 'repeated') {
      demand(ledger.stored.has(event.id), `I14: ${event.id} is said to be stored, and is not`)
    } else if (result.kind !== 'routes-old') {
      demand(known, `I14: ${event.id} was kept out as ${result.kind} though nothing has its identity`)
    }
  })
}

/** An acknowledged event gets its placements: from here on, each of them must end. */
export function enter(ledger: Ledger, event: EventToStore, now: Millis): void {
  ledger.stored.add(event.id)
  ledger.identities.set(event.identity, { event: event.id, until: addDelay(now, event.dedupeFor) })
  if (event.unrouted.length > 0) ledger.marked.set(event.id, (ledger.marked.get(event.id) ?? 0) + event.unrouted.length)
  for (const place of event.placements) take(ledger, event.id, place, { rank: 0, now })
}

/** A live event has one placement in a lane, however often it is placed there. */
export function take(
  ledger: Ledger,
  event: string,
  place: Placement,
  at: { readonly rank: 0 | 1; readonly now: Millis },
): void {
  const lane = ledgerLane(ledger, place)
  if (at.rank === 0 && lane.placements.some((one) => one.event === event)) return
  const cap = addDelay(at.now, at.rank === 0 ? place.max : 0)
  const quietEnds = addDelay(at.now, place.quiet)
  const { rank, now } = at
  lane.placements = [
    ...lane.placements,
    { event, lane: lane.id, rank, order: ++ledger.order, arrival: now, cap, quietEnds, state: 'waiting' },
  ]
}
