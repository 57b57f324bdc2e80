// What must be gone: the data of one key, of one tenant, or of one event, wherever it is (L15).
import { SluiceError } from '../errors.ts'
import { laneId } from '../model/identity.ts'
import { onlyKnown } from '../model/options.ts'
import { DELAYED } from '../receive/delayed.ts'
import type { FindReply, PurgeCall, Store } from '../store/contract/index.ts'
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
const LOOKED_AT = 100

export async function purge(parts: OperateParts, what: PurgeWhat): Promise<Purged> {
  const call = callFor(parts, what)
  const store = await parts.store()
  const purged = { events: 0, letters: 0, runs: 0 }
  for await (const one of andWrappers(store, call)) {
    for (let more = true; more;) {
      const reply = await store.purge({ what: one, n: AT_ONCE })
      purged.events += reply.events
      purged.letters += reply.letters
      purged.runs += reply.runs
      more = reply.more
    }
  }
  return purged
}

type What = PurgeCall['what']

/** An event that was published with `at` has its data in a second one, in which it waits or waited. That goes first. */
async function* andWrappers(store: Store, call: What): AsyncIterable<What> {
  if (call.kind === 'event') yield wrappersOf([call.id])
  const filters = call.kind === 'lanes' ? call.ids.map((lane) => ({ lane })) : []
  for (const filter of filters) {
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: FindReply<'events'> = await store.find({ kind: 'events', filter, cursor, n: LOOKED_AT })
      if (page.items.length > 0) yield wrappersOf(page.items.map(({ id }) => id))
      cursor = page.next
    }
  }
  yield call
}

function wrappersOf(ids: readonly string[]): What {
  return { kind: 'lanes', ids: ids.map((id) => laneId(DELAYED, id)) }
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
