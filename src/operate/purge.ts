// What must be gone: the data of one key, of one tenant, or of one event, wherever it is (L15).
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { PurgeCall } from '../store/contract/index.ts'
import type { OperateParts } from './lanes.ts'
import { laneOf } from './name-lane.ts'

export type PurgeWhat =
  | { readonly flow: string; readonly key: string }
  | { readonly tenant: string }
  | { readonly event: string }

/** What was removed. */
export interface Purged {
  readonly events: number
  readonly letters: number
  readonly runs: number
}

const KNOWN: ReadonlySet<string> = new Set(['flow', 'key', 'tenant', 'event'])
/** Of one call: others want the store as well. */
const AT_ONCE = 500

export async function purge(parts: OperateParts, what: PurgeWhat): Promise<Purged> {
  const call = callFor(parts, what)
  const store = await parts.store()
  const purged = { events: 0, letters: 0, runs: 0 }
  for (let more = true; more;) {
    const reply = await store.purge({ what: call, n: AT_ONCE })
    purged.events += reply.events
    purged.letters += reply.letters
    purged.runs += reply.runs
    more = reply.more
  }
  return purged
}

/** Read strictly: what is removed by mistake does not come back. */
function callFor({ flows }: OperateParts, what: PurgeWhat): PurgeCall['what'] {
  if (typeof what !== 'object' || what === null) throw invalid()
  onlyKnown(what, KNOWN, 'purge: ')
  const { flow, key, tenant, event } = what as Readonly<Record<string, unknown>>
  const given = [flow !== undefined && key !== undefined, tenant !== undefined, event !== undefined]
  if (given.filter(Boolean).length !== 1) throw invalid()
  if (typeof tenant === 'string' && tenant !== '' && flow === undefined) return { kind: 'tenant', tenant }
  if (typeof event === 'string' && event !== '' && flow === undefined) return { kind: 'event', id: event }
  if (typeof flow === 'string' && typeof key === 'string') {
    return { kind: 'lanes', ids: [laneOf(flows, flow, key)] }
  }
  throw invalid()
}

function invalid(): SluiceError {
  return new SluiceError('CONFIG_INVALID', 'purge: one of { flow, key }, { tenant } and { event } says what is to go.')
}
