// What the store says is there: the lanes of the flow, and the dead letters since a moment.
import { type FindReply, type Millis, type Filter, type RecordKind, type Records, type Store } from '../index.ts'
import { FLOW } from './flow.ts'

export type Lane = Records['lanes']

export interface Lanes {
  /** The store's time. */
  readonly now: Millis
  readonly lanes: readonly Lane[]
}

export async function lanesOf(store: Store): Promise<Lanes> {
  const { now } = await store.stats()
  return { now, lanes: await all(store, 'lanes', { flow: FLOW }) }
}

/** All events that have not ended: those that wait, and those of runs. */
export function waitingIn(lanes: readonly Lane[]): number {
  return lanes.reduce((sum, lane) => sum + lane.waiting + (lane.run?.events ?? 0), 0)
}

export async function deadSince(store: Store, from: Millis): Promise<number> {
  const letters = await all(store, 'dead', { flow: FLOW, from })
  return letters.reduce((sum, letter) => sum + letter.events.length, 0)
}

const PAGE = 100

async function all<K extends RecordKind>(store: Store, kind: K, filter: Filter): Promise<readonly Records[K][]> {
  const items: Records[K][] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: FindReply<K> = await store.find({ kind, filter, cursor, n: PAGE })
    items.push(...page.items)
    cursor = page.next
  }
  return items
}
