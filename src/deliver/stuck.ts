// Batches that should have been on their way for a while: of a lane that is due and that nothing takes up.
import type { Millis } from '../clock.ts'
import { laneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { FindReply, Store } from '../store/contract/index.ts'

const AFTER: Millis = 5 * 60_000
const PAGE = 1_000

/** How many, by endpoint. No more lanes are looked at than there are endpoints, for each delivery. */
export async function stuckBatches(
  store: Store,
  names: readonly string[],
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const stuck = new Map<string, number>()
  const look = (lane: Lane, now: Millis): void => {
    const isStuck = lane.hold === undefined && lane.due < now - AFTER
    if (isStuck) stuck.set(lane.key, (stuck.get(lane.key) ?? 0) + 1)
  }
  for (const name of names) {
    if (ids.length > 1) await eachLane(store, name, look)
    else for (const id of ids) await oneLane(store, laneId(name, id), look)
  }
  return stuck
}

type Look = (lane: Lane, now: Millis) => void

async function oneLane(store: Store, id: string, look: Look): Promise<void> {
  const { item, now } = await store.get({ kind: 'lanes', id })
  if (item !== undefined) look(item, now)
}

async function eachLane(store: Store, flow: string, look: Look): Promise<void> {
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow }, cursor, n: PAGE })
    for (const lane of page.items) look(lane, page.now)
    cursor = page.next
  }
}
