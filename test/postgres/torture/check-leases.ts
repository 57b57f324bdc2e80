// Checks what holds at all times: one live run per lane, the maximum runs of a tenant and of a flow, none while an operator
// holds the lane, and the order of each publisher's events.
import type { Acted, Lease, Ledger } from './ledger.ts'
import { BOUNDS } from './plan.ts'

export function checkLeases(ledger: Ledger): readonly string[] {
  const complaints: string[] = []
  const { leases } = ledger
  const byLane = Map.groupBy(leases, ({ lane, flow }) => `lane ${lane} of ${flow}`)
  for (const [name, its] of byLane) complaints.push(...overlaps(name, its, 1, leased))
  // The store counts the runs of a tenant. Permits are for handlers, and are returned before the runs are settled.
  const byTenant = Map.groupBy(of(leases, 'shared'), ({ group }) => `tenant ${group} of shared`)
  for (const [name, its] of byTenant) complaints.push(...overlaps(name, its, BOUNDS.shared, leased))
  complaints.push(...overlaps('flow strict', of(leases, 'strict'), BOUNDS.strict, atWork))
  for (const lease of leases) {
    if (lease.entered !== undefined && lease.entered < lease.at) complaints.push(`${lease.run} began before its claim`)
  }
  for (const act of ledger.acts) complaints.push(...heldBack(act, leases))
  for (const its of byLane.values()) complaints.push(...outOfOrder(ledger, its))
  return complaints
}

function of(leases: readonly Lease[], flow: string): readonly Lease[] {
  return leases.filter((lease) => lease.flow === flow)
}

type Span = readonly [from: number, to: number]

/** The time from the reply to the claim to the earliest possible end: never longer than the lease was. */
function leased({ at, settling, until }: Lease): Span {
  return [at, Math.min(settling ?? Infinity, until)]
}

/** A handler runs until it has ended, or its lease has. */
function atWork({ entered = Infinity, left = Infinity, until }: Lease): Span {
  return [entered, Math.min(left, until)]
}

function overlaps(
  name: string,
  leases: readonly Lease[],
  most: number,
  spanOf: (of: Lease) => Span,
): readonly string[] {
  const live: Lease[] = []
  const complaints: string[] = []
  for (const lease of leases.toSorted((one, other) => spanOf(one)[0] - spanOf(other)[0])) {
    const [from, to] = spanOf(lease)
    const left = live.filter((one) => spanOf(one)[1] > from)
    live.splice(0, live.length, ...left)
    if (to > from) live.push(lease)
    if (live.length > most) {
      const runs = live.map(({ run, app, token }) => `${run} (${token}) in ${app}`)
      complaints.push(`${live.length} live runs of ${name}, ${most} allowed: ${runs.join(', ')}`)
    }
  }
  return complaints
}

/** Checks that no held lane is claimed. */
function heldBack(act: Acted, leases: readonly Lease[]): readonly string[] {
  const { action, target, ended, undone, answer } = act
  if ((action !== 'hold' && action !== 'pause') || (answer !== 'ok' && answer !== 'already')) return []
  return leases
    .filter(({ lane, flow }) => target === (action === 'hold' ? lane : flow))
    .filter(({ sent, at }) => sent > ended && at < undone)
    .map(({ run, flow }) => `${run} of ${flow} was claimed while an operator had it on ${action}`)
}

/** Checks that what a publisher sent first is claimed first, in a lane and in a batch. */
function outOfOrder({ sent }: Ledger, leases: readonly Lease[]): readonly string[] {
  const last = new Map<string, number>()
  const seen = new Set<string>()
  const complaints: string[] = []
  for (const { deadLetter, events, run } of leases.toSorted((one, other) => one.token - other.token)) {
    for (const label of deadLetter ? [] : events) {
      const known = sent.get(label)
      if (known === undefined || known.isPlacedAlone || seen.has(label)) continue
      seen.add(label)
      const { publisher, n } = known
      const before = last.get(publisher) ?? -1
      if (n < before) complaints.push(`${label} was first claimed by ${run}, after ${publisher}-${before}`)
      last.set(publisher, Math.max(before, n))
    }
  }
  return complaints
}
