// `purgeAnswers` removes stored responses of endpoints, because a response may echo the purged events (L15).
import { laneId, type LaneId } from '../model/identity.ts'
import type { FindReply, PurgeTarget, RunRecord, Store } from '../store/contract/index.ts'
import type { EndpointDocs } from './endpoint-docs.ts'
import type { HistoryStore } from './health/history-store.ts'

export interface PurgeAnswersDependencies {
  readonly store: () => Promise<Store>
  readonly docs: Pick<EndpointDocs, 'readAll'>
  readonly histories: Pick<HistoryStore, 'getAll' | 'forgetAnswers'>
  /** The names of the deliveries. */
  readonly deliveries: readonly string[]
}

/** `purgeAnswers` must be called before the purge, which removes the records that name the events of a run. */
export async function purgeAnswers(deps: PurgeAnswersDependencies, what: PurgeTarget): Promise<void> {
  if (deps.deliveries.length === 0) return
  const store = await deps.store()
  const { value: kept } = await deps.docs.readAll()
  const known = new Set(kept.flatMap(({ id }) => deps.deliveries.map((name) => laneId(name, id))))
  const purged = await findPurgedLanes(store, what, known)
  for (const { id, tenant } of kept) {
    const lanes = deps.deliveries.map((name) => laneId(name, id))
    const isOfTenant = what.kind === 'tenant' && tenant === what.tenant
    const its = isOfTenant ? lanes : lanes.filter((lane) => purged.has(lane))
    if (its.length === 0) continue
    const answered = (await deps.histories.getAll([id])).get(id)?.attempts.map(({ run }) => run) ?? []
    const live = await Promise.all(its.map((lane) => store.get({ kind: 'lanes', id: lane })))
    const runs = [...new Set([...answered, ...live.flatMap(({ item }) => item?.run?.id ?? [])])]
    const isOf = await Promise.all(runs.map((run) => mayContainEvent(store, run, what)))
    await deps.histories.forgetAnswers(
      id,
      runs.filter((_, at) => isOf[at] === true),
    )
  }
}

/** Of a tenant or a subject, only the `known` lanes are returned: the others may be very many. */
async function findPurgedLanes(
  store: Store,
  what: PurgeTarget,
  known: ReadonlySet<LaneId>,
): Promise<ReadonlySet<LaneId>> {
  if (what.kind === 'lanes') return new Set(what.ids)
  if (what.kind === 'event') return new Set((await store.get({ kind: 'events', id: what.id })).item?.lanes)
  const filter = {
    ...(what.tenant !== undefined && { tenant: what.tenant }),
    ...(what.kind === 'subject' && { subject: what.subject }),
  }
  const found = new Set<LaneId>()
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: FindReply<'events'> = await store.find({ kind: 'events', filter, cursor, n: EVENTS_PER_PAGE })
    for (const lane of page.items.flatMap(({ lanes }) => lanes)) if (known.has(lane)) found.add(lane)
    cursor = page.next
  }
  return found
}

const EVENTS_PER_PAGE = 500

/** The record of a partial run names only the accepted events. That of a run that ended as a whole names all. */
async function mayContainEvent(store: Store, run: string, what: PurgeTarget): Promise<boolean> {
  if (what.kind !== 'event') return true
  const { item } = await store.get({ kind: 'runs', id: run })
  return item === undefined || !COMPLETE_KINDS.has(item.kind) || item.events.includes(what.id)
}

const COMPLETE_KINDS: ReadonlySet<RunRecord['kind']> = new Set(['done', 'dead'])
