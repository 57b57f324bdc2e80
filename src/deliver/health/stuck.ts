// `countStuckBatches` counts the batches of lanes that are overdue because no process claims them.
import type { Millis } from '../../clock.ts'
import { laneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { FindReply, Store } from '../../store/contract/index.ts'

const STUCK_AFTER: Millis = 5 * 60_000
const PAGE = 1_000

/** `countStuckBatches` returns the number per endpoint. For each delivery it reads at most one lane per endpoint. */
export async function countStuckBatches(
  store: Store,
  names: readonly string[],
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const stuck = new Map<string, number>()
  const look = (lane: Lane, now: Millis): void => {
    const isStuck = lane.hold === undefined && lane.due < now - STUCK_AFTER
    if (isStuck) stuck.set(lane.key, (stuck.get(lane.key) ?? 0) + 1)
  }
  for (const name of names) {
    if (ids.length > 1) await visitLanes(store, name, look)
    else for (const id of ids) await visitLane(store, laneId(name, id), look)
  }
  return stuck
}

type LaneVisitor = (lane: Lane, now: Millis) => void

async function visitLane(store: Store, id: string, look: LaneVisitor): Promise<void> {
  const { item, now } = await store.get({ kind: 'lanes', id })
  if (item !== undefined) look(item, now)
}

async function visitLanes(store: Store, flow: string, look: LaneVisitor): Promise<void> {
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow }, cursor, n: PAGE })
    for (const lane of page.items) look(lane, page.now)
    cursor = page.next
  }
}
