// The rare fields of a lane, which both SQL stores write as JSON into one column.
import { NEVER, type Millis } from '../../clock.ts'
import type { Lane, RunState } from '../../model/lane.ts'

type RareLaneFields = Pick<
  Lane,
  | 'hasRemaining'
  | 'replays'
  | 'replayDue'
  | 'liveClaims'
  | 'queuedDeadLetters'
  | 'deadLetterDue'
  | 'blocks'
  | 'hold'
  | 'ended'
  | 'keepUntil'
  | 'run'
>

/** `RareRunFields` leaves out the fields that the view `work` reads: they are always stored. */
type RareRunFields = Pick<
  RunState,
  | 'parent'
  | 'replay'
  | 'lapses'
  | 'failed'
  | 'first'
  | 'cancel'
  | 'full'
  | 'committed'
  | 'purged'
  | 'failingSince'
  | 'snoozedSince'
  | 'state64'
  | 'attempts'
>

/**
 * These defaults belong to the stored format of every version: an omitted field has this value, even if new runs start with
 * another.
 */
const LANE_DEFAULTS: Omit<RareLaneFields, 'hold' | 'run'> = {
  hasRemaining: false,
  replays: 0,
  replayDue: NEVER,
  liveClaims: 0,
  queuedDeadLetters: 0,
  deadLetterDue: NEVER,
  blocks: 0,
  ended: 0,
  keepUntil: 0,
}
const RUN_DEFAULTS: RareRunFields = {
  parent: '',
  replay: '',
  lapses: 0,
  failed: false,
  first: true,
  cancel: false,
  full: false,
  committed: false,
  purged: false,
  failingSince: 0,
  snoozedSince: 0,
  state64: '',
  attempts: [],
}

/** `PLAIN_RUN` holds the fields that all plain runs share. */
export const PLAIN_RUN: RareRunFields & Pick<RunState, 'state' | 'rank' | 'isDeadLetter' | 'tries'> = {
  ...RUN_DEFAULTS,
  state: 'running',
  rank: 0,
  isDeadLetter: false,
  tries: 0,
}

/** `isPlainRunning` returns whether the run is in its first attempt, as most runs are, and nothing has happened to it. */
export function isPlainRunning(run: RunState): boolean {
  return run.state === 'running' && run.rank === 0 && !run.isDeadLetter && run.tries === 0 && hasUsualFields(run)
}

/** `serializeRareFields` stores the fields that most lanes do not need. It returns null for a lane that only waits. Fields with their default value are omitted. */
export function serializeRareFields(lane: Lane): string | null {
  const { hasRemaining, replays, queuedDeadLetters, blocks, hold, keepUntil, run } = lane
  const plain =
    run === undefined && !hasRemaining && replays === 0 && queuedDeadLetters === 0 && blocks === 0 && hold === undefined
  if (plain && keepUntil === 0) return null
  const { replayDue, liveClaims, deadLetterDue, ended } = lane
  const rest = {
    hasRemaining,
    replays,
    replayDue,
    liveClaims,
    queuedDeadLetters,
    deadLetterDue,
    blocks,
    ended,
    keepUntil,
  }
  return JSON.stringify({ ...omitDefaults(rest, LANE_DEFAULTS), hold, run: run && omitRunDefaults(run) })
}

/** A new run has only defaults and is written with every claim, so this path does not compare each field. */
function omitRunDefaults(run: RunState): Partial<RunState> {
  const { id, state, token, until, rank, upto, isDeadLetter, events, bytes, cap, started, tries } = run
  if (hasUsualFields(run))
    return { id, state, token, until, rank, upto, isDeadLetter, events, bytes, cap, started, tries }
  return omitDefaults(run, RUN_DEFAULTS)
}

function hasUsualFields(run: RunState): boolean {
  return (
    run.first &&
    run.parent === '' &&
    run.replay === '' &&
    run.lapses === 0 &&
    run.snoozedSince === 0 &&
    run.state64 === '' &&
    run.attempts.length === 0 &&
    !(run.failed || run.cancel || run.full || run.committed || run.purged)
  )
}

export function parseRareFields(written: string): RareLaneFields {
  const { run, hold, ...rest } = JSON.parse(written) as Partial<RareLaneFields>
  return { ...LANE_DEFAULTS, ...rest, hold, run: run && { ...RUN_DEFAULTS, ...run } }
}

function omitDefaults<T extends object>(fields: T, plain: Partial<T>): Partial<T> {
  const changed: Partial<T> = {}
  for (const name of Object.keys(fields) as (keyof T)[]) {
    const isPlain = fields[name] === plain[name] || (name === 'attempts' && (fields[name] as unknown[]).length === 0)
    if (!isPlain) changed[name] = fields[name]
  }
  return changed
}

/** `getLeaseEnd` returns the end of the live lease; NEVER if nothing runs. */
export function getLeaseEnd({ run }: Lane): Millis {
  return run?.state === 'running' ? run.until : NEVER
}

/**
 * `getKeepUntil` returns until when an otherwise empty lane is kept, because of its last run or its hold; NEVER for all other
 * lanes.
 */
export function getKeepUntil({ run, waiting, replays, queuedDeadLetters, blocks, keepUntil, hold }: Lane): Millis {
  const isBare = run === undefined && waiting === 0 && replays === 0 && queuedDeadLetters === 0 && blocks === 0
  return isBare ? Math.max(keepUntil, hold?.until ?? 0) : NEVER
}
