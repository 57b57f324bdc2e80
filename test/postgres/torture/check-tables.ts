// Checks the content of each table when no work is left, and when all retention has passed.
import { isDeepStrictEqual } from 'node:util'
import type { Acted, Ledger, Lease } from './ledger.ts'
import { mustHaveGone, purged } from './check-ends.ts'
import { inputOf, lanesOf, type Input } from './plan.ts'
import { bytesIn, eventsOf, type EventRow, type Tables } from './tables.ts'

/** Tables of work in progress, which must be empty. */
const EMPTY = ['lanes', 'places', 'marks', 'outbox', 'pauses', 'waits', 'replays', 'audit', 'readers'] as const
/** Rows that stay forever: name and version of the store, counters at zero, and documents. */
const FOR_GOOD: readonly string[] = ['meta', 'stored_bytes', 'docs']

export function checkTables(ledger: Ledger, tables: Tables, remains: Tables): readonly string[] {
  const complaints: string[] = []
  for (const name of EMPTY)
    for (const row of tables[name] ?? []) complaints.push(`left in ${name}: ${JSON.stringify(row)}`)
  complaints.push(...checkEvents(ledger, tables), ...checkPublished(ledger, tables))
  for (const [name, rows] of Object.entries(remains)) {
    if (FOR_GOOD.includes(name)) continue
    for (const row of rows) complaints.push(`left for good in ${name}: ${JSON.stringify(row)}`)
  }
  for (const [when, of] of [
    ['now', tables],
    ['much later', remains],
  ] as const) {
    const counted = of.stored_bytes.reduce((sum, { bytes }) => sum + bytes, 0)
    const there = of.events.reduce((sum, { body, request }) => sum + bytesIn(body) + bytesIn(request), 0)
    if (counted !== there) complaints.push(`${counted} bytes are counted ${when}, and ${there} are there`)
  }
  return complaints
}

function checkEvents(ledger: Ledger, { events, deadLetters, receipts }: Tables): readonly string[] {
  const complaints: string[] = []
  const dead = new Set(deadLetters.flatMap(eventsOf))
  const byId = new Map(events.map((event) => [event.id, event]))
  const counts = Map.groupBy(receipts, ({ event }) => event)
  for (const { input, acked, rolledBack, receipts: least, unknown } of ledger.sent.values()) {
    const { id } = input
    const event = byId.get(id)
    byId.delete(id)
    if (acked !== undefined && event === undefined) complaints.push(`lost: ${id} was acknowledged, and is not stored`)
    if (rolledBack && event !== undefined) complaints.push(`${id} is stored, and its transaction was rolled back`)
    if (event === undefined) continue
    const found = counts.get(event.seq)?.length ?? 0
    counts.delete(event.seq)
    // Receipts are deleted with the body. The first try may have stored the event, so the second try left a receipt.
    if ((found < least && event.purged_hash === '') || found > least + unknown)
      complaints.push(`${id} has ${found} receipts, of ${least} to ${least + unknown}`)
    complaints.push(...eventFaults(ledger, input, event, dead.has(event.seq)))
  }
  const parcels = new Set(ledger.leases.flatMap(({ published }) => published))
  for (const [id, event] of byId) {
    if (!parcels.has(id)) complaints.push(`event ${id} came from nowhere`)
    else complaints.push(...eventFaults(ledger, inputOf(id, 'parcel'), event, dead.has(event.seq)))
  }
  for (const event of counts.keys())
    if (!events.some(({ seq }) => seq === event)) complaints.push(`a receipt of event ${event}, which is not there`)
  return complaints
}

/** `isDead` is true if a dead letter holds the event and keeps its body. */
function eventFaults(ledger: Ledger, input: Input, event: EventRow, isDead: boolean): readonly string[] {
  const complaints: string[] = []
  const { id, lanes, doomed, purged_hash: hash, body, request } = event
  const { may, must } = wiped(ledger, input)
  const isWiped = hash !== ''
  if (isWiped && !may) complaints.push(`lost: the body of ${id}, which nobody purged`)
  if (!isWiped && must && !isDead) complaints.push(`${id} was purged, and its body is there`)
  if (isWiped && bytesIn(body) + bytesIn(request) > 0) complaints.push(`${id} was wiped, and its body is there`)
  if (!isWiped && bytesIn(body) === 0) complaints.push(`lost: the body of ${id}`)
  if (doomed && !isDead) complaints.push(`${id} is to go when its lanes have ended, which they have`)
  if (!isWiped && !isDeepStrictEqual(lanes.toSorted(), lanesOf(input).toSorted()))
    complaints.push(`${id} was placed in other lanes than its own`)
  return complaints
}

/**
 * The body is deleted with the event, its tenant, or the last of its lanes; and with a lane only after all others have ended,
 * as they have here.
 */
function wiped(ledger: Ledger, input: Input): { readonly may: boolean; readonly must: boolean } {
  const each = lanesOf(input).map((lane) => purged(ledger, input, lane))
  return { may: each.some(({ may }) => may), must: each.some(({ must }) => must) }
}

/** Checks that events that runs published are stored if, and only if, the settlements were. */
function checkPublished({ leases }: Ledger, { events }: Tables): readonly string[] {
  const stored = new Set(events.map(({ id }) => id))
  const complaints: string[] = []
  const may = new Set<string>()
  for (const { answer, published, run } of leases) {
    if (answer === 'ok' || answer === 'unknown') for (const id of published) may.add(id)
    if (answer !== 'ok') continue
    for (const id of published) if (!stored.has(id)) complaints.push(`lost: ${id}, which ${run} published`)
  }
  const refused = leases.filter(({ answer }) => answer === 'lost' || answer === 'purged')
  for (const { published, run } of refused) {
    for (const id of published)
      if (stored.has(id) && !may.has(id)) complaints.push(`${id} is stored, and ${run} was not settled`)
  }
  return complaints
}

/** Checks that nothing is claimed that an operator dropped or purged while it waited. */
export function checkGone(ledger: Ledger): readonly string[] {
  const first = new Map<string, Lease>()
  for (const lease of ledger.leases.toSorted((one, other) => one.token - other.token)) {
    for (const label of lease.events) {
      const at = `${label} in ${lease.lane}`
      if (!first.has(at)) first.set(at, lease)
    }
  }
  return ledger.acts.flatMap((act) =>
    act.action === 'hold' || act.action === 'pause' ? [] : claimedAfter(ledger, act, first),
  )
}

function claimedAfter(ledger: Ledger, act: Acted, first: ReadonlyMap<string, Lease>): readonly string[] {
  return [...ledger.sent.values()]
    .filter((sent) => mustHaveGone(act, sent))
    .flatMap(({ input }) =>
      lanesOf(input)
        .filter((lane) => act.target === lane || act.target === input.id || act.target === input.tenant)
        .flatMap((lane) => first.get(`${input.id} in ${lane}`) ?? [])
        .filter(({ sent }) => sent > act.ended)
        .map(({ run }) => `${input.id} was claimed by ${run} after ${act.action}`),
    )
}
