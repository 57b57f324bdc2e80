// Reads the past of a lane: its dead letters, how its last run ended, and why no event arrived under its key.
import { OWN_SOURCES } from '../../model/event.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import { formatRoutingNote } from '../../model/routing.ts'
import type { FindReply, DeadLetterRecord, Store } from '../../store/contract/index.ts'
import type { ObstacleFacts, PastFacts, LaneRecordFacts, SkipFacts } from './facts.ts'
import { redact } from '../log/redact.ts'

const PAGE = 100
const MAX_PAGES = 4
/** How many of the newest events are searched for skips. */
const MAX_EVENTS = 100

export async function collectDeadLetterFacts(
  store: Store,
  lane: Lane | undefined,
  record: LaneRecordFacts,
): Promise<Partial<ObstacleFacts>> {
  const isBlocked = record.laneState === 'blocked' || record.behindHold === 'blocked'
  if (lane === undefined || !(isBlocked || record.queued > 0)) return {}
  const { deadLetters, all } = await readDeadLetters(store, lane.id)
  const block = isBlocked ? deadLetters.findLast((deadLetter) => deadLetter.blocks) : undefined
  // The oldest dead letter runs first, and it is known only after the last page.
  const queued = all ? deadLetters.findLast((deadLetter) => deadLetter.state === 'queued') : undefined
  return {
    blockedBy: block?.id,
    blockedSince: block?.at,
    blockedReason: redact(block?.reason),
    blockedTries: block?.tries,
    queuedDeadLetter: queued?.id,
  }
}

/** Returns the newest first. */
async function readDeadLetters(
  store: Store,
  lane: LaneId,
): Promise<{ readonly deadLetters: readonly DeadLetterRecord[]; readonly all: boolean }> {
  const deadLetters: DeadLetterRecord[] = []
  let cursor: string | undefined = ''
  for (let pages = 0; pages < MAX_PAGES && cursor !== undefined; pages++) {
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
    const page: FindReply<'dead'> = await store.find({ kind: 'dead', filter: { lane }, cursor, n: PAGE })
    deadLetters.push(...page.items)
    cursor = page.next
  }
  return { deadLetters, all: cursor === undefined }
}

export async function readPastFacts(store: Store, lane: LaneId): Promise<PastFacts> {
  const [runs, dead] = await Promise.all([
    store.find({ kind: 'runs', filter: { lane }, cursor: '', n: 1 }),
    store.count({ kind: 'dead', filter: { lane }, cursor: '', atMost: PAGE }),
  ])
  const [run] = runs.items
  return {
    lastRun: run?.id,
    lastRunKind: run?.kind,
    lastRunEnded: run?.ended,
    dead: dead.count,
    deadExact: dead.next === undefined,
  }
}

/** `collectSkipFacts` looks for a reason why a flow has nothing under a key. The key may also be the id of an event. */
export async function collectSkipFacts(store: Store, flow: string, key: string): Promise<SkipFacts> {
  const [newest, named] = await Promise.all([
    store.find({ kind: 'events', filter: { withoutSource: OWN_SOURCES }, cursor: '', n: MAX_EVENTS }),
    store.get({ kind: 'events', id: key }),
  ])
  const skipped = newest.items.filter(({ skips }) =>
    skips.some((skip) => skip.flow === flow && skip.reason === 'no-key'),
  )
  const [last] = skipped
  const { item } = named
  return {
    skipped: skipped.length,
    skippedOf: newest.items.length,
    skippedLast: last?.id,
    skippedAt: last?.arrived,
    event: item?.id,
    eventNote: item === undefined || item.purged ? undefined : formatRoutingNote(item),
  }
}
