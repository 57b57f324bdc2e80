// The ledger's check of renewals, permits, and events that are placed later.
import { addDelay, type Millis } from '../../../src/clock.ts'
import type {
  LeasedUnroutedEvent,
  LeasePermitsCall,
  PlaceCall,
  PlaceReply,
  RenewCall,
  RenewReply,
} from '../../../src/store/contract/index.ts'
import { laneName } from '../settings.ts'
import { demand } from '../violation.ts'
import { take } from './append.ts'
import { isLeased, countUnrouted, type Ledger } from './state.ts'

export function renewed(
  ledger: Ledger,
  seen: { readonly call: RenewCall; readonly results: RenewReply['results']; readonly now: Millis },
): void {
  seen.call.runs.forEach(({ lane, token }, n) => {
    const run = ledger.lanes.get(lane)?.run
    const mine = run !== undefined && run.token === token && isLeased(run, seen.now)
    const perhapsOver = mine && run.purged && run.leaseEnds <= ledger.latest && seen.results[n] === 'lost'
    demand(
      (seen.results[n] === 'lost') === !mine || perhapsOver,
      `I12: renewing ${laneName(lane)} is ${seen.results[n]}`,
    )
    if (mine && !perhapsOver) run.leaseEnds = addDelay(seen.now, seen.call.lease)
  })
}

/** I11: the permits that are granted at one moment never exceed the maximum. */
export function granted(
  ledger: Ledger,
  seen: { readonly call: LeasePermitsCall; readonly granted: readonly number[]; readonly now: Millis },
): void {
  seen.call.requests.forEach(({ name, want, max }, index) => {
    const n = seen.granted[index] ?? 0
    const holders = ledger.permits.get(name) ?? new Map<string, { n: number; ends: Millis }>()
    ledger.permits.set(name, holders)
    holders.delete(seen.call.process)
    const others = [...holders.values()].filter((one) => one.ends > seen.now).reduce((sum, one) => sum + one.n, 0)
    demand(n <= want, `I11: ${n} permits for a process that wants ${want}`)
    demand(others + n <= max, `I11: ${others} and ${n} permits of ${max} are out`)
    if (others === 0) demand(n === Math.min(want, max), `I11: ${n} permits granted though all ${max} are free`)
    holders.set(seen.call.process, { n, ends: addDelay(seen.now, seen.call.lease) })
  })
}

export interface SeenPlace {
  readonly call: PlaceCall
  readonly results: PlaceReply['results']
  readonly now: Millis
  readonly unrouted: readonly LeasedUnroutedEvent[]
}

export function placed(ledger: Ledger, { call, results, now, unrouted }: SeenPlace): void {
  call.items.forEach((item, n) => {
    if (results[n] !== 'placed') return
    if (item.kind === 'replay') {
      for (const place of item.placements) take(ledger, item.event, place, { rank: 1, now })
      return
    }
    const entry = unrouted.find((one) => one.id === item.id)
    if (entry === undefined) return
    for (const place of item.placements) take(ledger, entry.event.id, place, { rank: 0, now })
    countUnrouted(ledger, entry.event.id, item.unrouted.length - 1)
  })
}
