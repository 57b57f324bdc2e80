// `purge` removes the data of one key, one tenant or one event, wherever it is stored (L15).
import { SluiceError } from '../errors.ts'
import { laneId } from '../model/identity.ts'
import { assertKnownOptions } from '../validate/options.ts'
import { DELAYED } from '../publish/delayed.ts'
import type { PurgeCall, Store } from '../store/contract/index.ts'
import type { OperatorDependencies } from './lanes.ts'
import { resolveLaneId } from './lane-view.ts'
import { findPages } from './pages.ts'

export type PurgeTarget =
  | { readonly flow: string; readonly key: string }
  | { readonly tenant: string }
  | { readonly event: string }

/** What the purge removed. */
export interface PurgeSummary {
  readonly events: number
  readonly letters: number
  readonly runs: number
}

const TARGET_FIELDS: ReadonlySet<string> = new Set(['flow', 'key', 'tenant', 'event'])
/** The number of items per store call, so that other callers get their turn. */
const PURGE_BATCH = 500
const LOOKUP_PAGE = 100

export async function purge(deps: OperatorDependencies, what: PurgeTarget): Promise<PurgeSummary> {
  const call = toStoreTarget(deps, what)
  const store = await deps.store()
  const purged = { events: 0, letters: 0, runs: 0 }
  await deps.deliveries().purgeAnswers(call)
  for await (const one of withDelayedEvents(store, call)) {
    for (let more = true; more;) {
      const reply = await store.purge({ what: one, n: PURGE_BATCH })
      purged.events += reply.events
      purged.letters += reply.deadLetters
      purged.runs += reply.runs
      more = reply.more
    }
  }
  return purged
}

type StorePurgeTarget = PurgeCall['what']

/** An event that was published with `at` has its data in a second event, which is purged first. */
async function* withDelayedEvents(store: Store, call: StorePurgeTarget): AsyncIterable<StorePurgeTarget> {
  if (call.kind === 'event') yield delayedLanesOf([call.id])
  const filters = call.kind === 'lanes' ? call.ids.map((lane) => ({ lane })) : []
  for (const filter of filters) {
    for await (const events of findPages(store, { kind: 'events', filter, n: LOOKUP_PAGE })) {
      if (events.length > 0) yield delayedLanesOf(events.map(({ id }) => id))
    }
  }
  yield call
}

function delayedLanesOf(ids: readonly string[]): StorePurgeTarget {
  return { kind: 'lanes', ids: ids.map((id) => laneId(DELAYED, id)) }
}

/** The check is strict, because a mistaken purge cannot be undone. */
function toStoreTarget({ flows }: OperatorDependencies, what: PurgeTarget): PurgeCall['what'] {
  if (typeof what !== 'object' || what === null) throw invalidTarget()
  assertKnownOptions(what, TARGET_FIELDS, 'purge: ')
  const { flow, key, tenant, event } = what as Readonly<Record<string, unknown>>
  const given = [flow !== undefined && key !== undefined, tenant !== undefined, event !== undefined]
  if (given.filter(Boolean).length !== 1) throw invalidTarget()
  if (typeof tenant === 'string' && tenant !== '' && flow === undefined) return { kind: 'tenant', tenant }
  if (typeof event === 'string' && event !== '' && flow === undefined) return { kind: 'event', id: event }
  if (typeof flow === 'string' && typeof key === 'string') {
    return { kind: 'lanes', ids: [resolveLaneId(flows, flow, key)] }
  }
  throw invalidTarget()
}

function invalidTarget(): SluiceError {
  return new SluiceError('CONFIG_INVALID', 'purge: the target must be one of { flow, key }, { tenant } and { event }.')
}
