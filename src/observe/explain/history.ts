// Reads the past of a lane: the dead letter that blocks it or is queued in it, and how its last run ended.
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { FindReply, DeadLetterRecord, Store } from '../../store/contract/index.ts'
import type { ObstacleFacts, PastFacts, LaneRecordFacts } from './facts.ts'
import { redact } from '../log/redact.ts'

const PAGE = 100
const MAX_PAGES = 4

export type DeadLetterFacts = Pick<
  ObstacleFacts,
  'blockedBy' | 'blockedSince' | 'blockedReason' | 'blockedTries' | 'queuedLetter'
>

const NO_DEAD_LETTERS: DeadLetterFacts = {
  blockedBy: undefined,
  blockedSince: undefined,
  blockedReason: undefined,
  blockedTries: undefined,
  queuedLetter: undefined,
}

export async function collectDeadLetterFacts(
  store: Store,
  lane: Lane | undefined,
  record: LaneRecordFacts,
): Promise<DeadLetterFacts> {
  const isBlocked = record.laneState === 'blocked' || record.behindHold === 'blocked'
  if (lane === undefined || !(isBlocked || record.queued > 0)) return NO_DEAD_LETTERS
  const { letters, all } = await readDeadLetters(store, lane.id)
  const block = isBlocked ? letters.findLast((letter) => letter.blocks) : undefined
  // The oldest dead letter runs first, and it is known only after the last page.
  const queued = all ? letters.findLast((letter) => letter.state === 'queued') : undefined
  return {
    blockedBy: block?.id,
    blockedSince: block?.at,
    blockedReason: redact(block?.reason),
    blockedTries: block?.tries,
    queuedLetter: queued?.id,
  }
}

/** Returns the newest first. */
async function readDeadLetters(
  store: Store,
  lane: LaneId,
): Promise<{ readonly letters: readonly DeadLetterRecord[]; readonly all: boolean }> {
  const letters: DeadLetterRecord[] = []
  let cursor: string | undefined = ''
  for (let pages = 0; pages < MAX_PAGES && cursor !== undefined; pages++) {
    // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
    const page: FindReply<'dead'> = await store.find({
      kind: 'dead',
      filter: { lane },
      cursor,
      n: PAGE,
    })
    letters.push(...page.items)
    cursor = page.next
  }
  return { letters, all: cursor === undefined }
}

export const NO_PAST: PastFacts = {
  lastRun: undefined,
  lastRunKind: undefined,
  lastRunEnded: undefined,
  dead: undefined,
  deadExact: undefined,
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
