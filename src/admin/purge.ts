// `purge` removes the data of one key, tenant, subject or event, wherever it is stored (L15).
import { SluiceError } from '../errors.ts'
import { laneId } from '../model/identity.ts'
import { assertKnownOptions } from '../validate/options.ts'
import { DELAYED } from '../publish/delayed.ts'
import { NEVER } from '../clock.ts'
import type { LaneId } from '../model/identity.ts'
import type { PurgeReply, PurgeScope, PurgeTarget as StorePurgeTarget, Store } from '../store/contract/index.ts'
import type { OperatorDependencies } from './lanes.ts'
import { resolveLaneId } from './lane-view.ts'
import { findPages } from './pages.ts'

export type PurgeTarget =
  | { readonly flow: string; readonly key: string }
  | { readonly tenant: string }
  /** The data of one subject, e.g. a user; with `tenant`, only its events of that tenant. */
  | { readonly subject: string; readonly tenant?: string }
  | { readonly event: string }

/** What the purge removed. */
export interface PurgeSummary {
  readonly events: number
  readonly deadLetters: number
  readonly runs: number
}

const TARGET_FIELDS: ReadonlySet<string> = new Set(['flow', 'key', 'tenant', 'subject', 'event'])
/** The number of items per store call, so that other callers get their turn. */
const PURGE_BATCH = 500
const LOOKUP_PAGE = 100
const RUN_BATCH = 1_000
const MAX_LANES_SEEN = 100_000

export async function purge(deps: OperatorDependencies, target: PurgeTarget): Promise<PurgeSummary> {
  const call = toStoreTarget(deps, target)
  const store = await deps.store()
  const purged = { events: 0, deadLetters: 0, runs: 0 }
  await deps.deliveries().purgeAnswers(call)
  const add = (reply: PurgeReply): void => {
    purged.events += reply.events
    purged.deadLetters += reply.deadLetters
    purged.runs += reply.runs
  }
  for await (const lane of lanesOf(store, call)) {
    for (let before: number | undefined = NEVER; before !== undefined;) {
      const reply: PurgeReply = await store.purge({
        what: { kind: 'runs', lane, of: scopeOf(call), before },
        n: RUN_BATCH,
      })
      add(reply)
      before = reply.more ? reply.before : undefined
    }
  }
  for await (const one of withDelayedEvents(store, call)) {
    for (let more = true; more;) {
      const reply = await store.purge({ what: one, n: PURGE_BATCH })
      add(reply)
      more = reply.more
    }
  }
  return purged
}

/** All given fields must match. The purge of a lane needs no scope: it finds all runs of the lane by itself. */
function scopeOf(call: StorePurgeTarget): PurgeScope {
  return call.kind === 'lanes' ? {} : call
}

/** Yields each lane with events in the scope, mostly once. */
async function* lanesOf(store: Store, call: StorePurgeTarget): AsyncGenerator<LaneId> {
  if (call.kind === 'lanes') return
  if (call.kind === 'event') {
    yield* (await store.get({ kind: 'events', id: call.id })).item?.lanes ?? []
    return
  }
  const { tenant } = call
  const filter = { ...(tenant !== undefined && { tenant }), ...(call.kind === 'subject' && { subject: call.subject }) }
  const seen = new Set<LaneId>()
  for await (const events of findPages(store, { kind: 'events', filter, n: PURGE_BATCH })) {
    for (const lane of events.flatMap(({ lanes }) => lanes)) {
      if (seen.has(lane)) continue
      // Looking at a lane twice costs time only, and memory is bounded.
      if (seen.size >= MAX_LANES_SEEN) seen.clear()
      seen.add(lane)
      yield lane
    }
  }
}

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
function toStoreTarget({ flows }: OperatorDependencies, target: PurgeTarget): StorePurgeTarget {
  if (typeof target !== 'object' || target === null) throw invalidTarget()
  assertKnownOptions(target, TARGET_FIELDS, 'purge: ')
  const named = Object.entries(target).filter(([, value]) => value !== undefined)
  const { flow, key, tenant, subject, event } = Object.fromEntries(named) as Readonly<Record<string, string>>
  if (named.some(([name, value]) => typeof value !== 'string' || (value === '' && name !== 'key')))
    throw invalidTarget()
  switch (
    named
      .map(([name]) => name)
      .toSorted()
      .join('+')
  ) {
    case 'flow+key':
      return { kind: 'lanes', ids: [resolveLaneId(flows, flow ?? '', key ?? '')] }
    case 'tenant':
      return { kind: 'tenant', tenant: tenant ?? '' }
    case 'subject':
    case 'subject+tenant':
      return { kind: 'subject', subject: subject ?? '', tenant }
    case 'event':
      return { kind: 'event', id: event ?? '' }
    default:
      throw invalidTarget()
  }
}

function invalidTarget(): SluiceError {
  return new SluiceError(
    'CONFIG_INVALID',
    'purge: the target must be one of { flow, key }, { tenant }, { subject }, { subject, tenant } and { event }.',
  )
}
