// `purgeAnswers` removes stored responses of endpoints, because a response may echo the purged events (L15).
import { laneId, type LaneId } from '../model/identity.ts'
import type { PurgeCall, RunRecord, Store } from '../store/contract/index.ts'
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
export async function purgeAnswers(deps: PurgeAnswersDependencies, what: PurgeCall['what']): Promise<void> {
  if (deps.deliveries.length === 0) return
  const store = await deps.store()
  const purged = await findPurgedLanes(store, what)
  const { value: kept } = await deps.docs.readAll()
  for (const { id, tenant } of kept) {
    const lanes = deps.deliveries.map((name) => laneId(name, id))
    const its =
      what.kind === 'tenant' ? (tenant === what.tenant ? lanes : []) : lanes.filter((lane) => purged.has(lane))
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

async function findPurgedLanes(store: Store, what: PurgeCall['what']): Promise<ReadonlySet<LaneId>> {
  if (what.kind === 'lanes') return new Set(what.ids)
  if (what.kind === 'tenant') return new Set()
  return new Set((await store.get({ kind: 'events', id: what.id })).item?.lanes)
}

/** The record of a partial run names only the accepted events. That of a run that ended as a whole names all. */
async function mayContainEvent(store: Store, run: string, what: PurgeCall['what']): Promise<boolean> {
  if (what.kind !== 'event') return true
  const { item } = await store.get({ kind: 'runs', id: run })
  return item === undefined || !COMPLETE_KINDS.has(item.kind) || item.events.includes(what.id)
}

const COMPLETE_KINDS: ReadonlySet<RunRecord['kind']> = new Set(['done', 'dead'])
