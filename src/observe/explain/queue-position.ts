// Finds the rank of a lane among the ready lanes of its queue, by (deadline, ticket), as the store serves them (L5).
import type { Millis } from '../../clock.ts'
import { FAILING, isLiveRun, SUSPECT, type Lane } from '../../model/lane.ts'
import type { FindReply, Store } from '../../store/contract/index.ts'
import type { QueueFacts } from './facts.ts'

/** Enough for most flows, and cheap enough to read at any time. */
const MAX_LANES = 2_000
const PAGE = 500
/** A page may be empty and still have a next page. */
const MAX_PAGES = 8

export const NOT_QUEUED: QueueFacts = {
  line: undefined,
  group: undefined,
  position: undefined,
  ahead: undefined,
  aheadExact: undefined,
  liveInGroup: undefined,
}

export async function collectQueueFacts(store: Store, lane: Lane, grouped: boolean, now: Millis): Promise<QueueFacts> {
  if (lane.due > now) return NOT_QUEUED
  const before = (other: Lane): boolean =>
    other.id !== lane.id &&
    other.line === lane.line &&
    (!grouped || other.group === lane.group) &&
    (other.due < lane.due || (other.due === lane.due && other.ticket < lane.ticket))
  // By id: lanes change between two pages, so one lane may appear twice.
  const seen = new Set<string>()
  const ahead = new Set<string>()
  const live = new Set<string>()
  let cursor: string | undefined = ''
  for (let pages = 0; pages < MAX_PAGES && cursor !== undefined && seen.size < MAX_LANES; pages++) {
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
    const page: FindReply<'lanes'> = await store.find({ kind: 'lanes', filter: { flow: lane.flow }, cursor, n: PAGE })
    for (const other of page.items) {
      seen.add(other.id)
      if (before(other)) ahead.add(other.id)
      if (other.group === lane.group && other.run !== undefined && isLiveRun(other.run, now)) live.add(other.id)
    }
    cursor = page.next
  }
  return {
    line: lane.line === SUSPECT ? 'suspect' : lane.line === FAILING ? 'failing' : 'healthy',
    group: grouped ? lane.group : undefined,
    position: ahead.size + 1,
    ahead: ahead.size,
    aheadExact: cursor === undefined,
    liveInGroup: live.size,
  }
}
