// What a lane has behind it: the dead letter it waits for or has queued, and how its last run ended.
import type { LaneId } from '../model/identity.ts'
import type { Lane } from '../model/lane.ts'
import type { FindReply, LetterRecord, Store } from '../store/contract/index.ts'
import type { HindranceFacts, PastFacts, RecordFacts } from './explain-facts.ts'
import { scrubbed } from './log-secrets.ts'

const PAGE = 100
const PAGES = 4

export type LetterFacts = Pick<
  HindranceFacts,
  'blockedBy' | 'blockedSince' | 'blockedReason' | 'blockedTries' | 'queuedLetter'
>

const NO_LETTERS: LetterFacts = {
  blockedBy: undefined,
  blockedSince: undefined,
  blockedReason: undefined,
  blockedTries: undefined,
  queuedLetter: undefined,
}

export async function lettersOf(store: Store, lane: Lane | undefined, record: RecordFacts): Promise<LetterFacts> {
  const isBlocked = record.laneState === 'blocked' || record.behindHold === 'blocked'
  if (lane === undefined || !(isBlocked || record.queued > 0)) return NO_LETTERS
  const { letters, all } = await lettersIn(store, lane.id)
  const block = isBlocked ? letters.findLast((letter) => letter.blocks) : undefined
  // The one that died first runs first: not known before the last page.
  const queued = all ? letters.findLast((letter) => letter.state === 'queued') : undefined
  return {
    blockedBy: block?.id,
    blockedSince: block?.at,
    blockedReason: scrubbed(block?.reason),
    blockedTries: block?.tries,
    queuedLetter: queued?.id,
  }
}

/** Newest first. */
async function lettersIn(
  store: Store,
  lane: LaneId,
): Promise<{ readonly letters: readonly LetterRecord[]; readonly all: boolean }> {
  const letters: LetterRecord[] = []
  let cursor: string | undefined = ''
  for (let pages = 0; pages < PAGES && cursor !== undefined; pages++) {
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

export async function pastOf(store: Store, lane: LaneId): Promise<PastFacts> {
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
