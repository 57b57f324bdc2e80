// `steer` is transition 4 of 4: an operator or maintenance acts on a lane (L9, L14, L15). It never touches the events of a live
// run.
import { NEVER } from '../clock.ts'
import { scheduleLane, isLiveRun, type HoldState, type Lane, type TransitionContext, type Attempt } from './lane.ts'
import { isCancellable } from './place.ts'

export type SteerAction =
  | { readonly kind: 'run-now' }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'hold'; readonly hold: HoldState }
  | { readonly kind: 'unhold' }

/** `steer` returns the lane after the action, or undefined if nothing changes. */
export function steer(lane: Lane, act: SteerAction, context: TransitionContext): Lane | undefined {
  switch (act.kind) {
    case 'run-now':
      return runNow(lane, context)
    case 'cancel':
      return lane.run !== undefined && isCancellable(lane.run, context.now)
        ? { ...lane, run: { ...lane.run, cancel: true } }
        : undefined
    case 'hold':
      return scheduleLane({ ...lane, hold: act.hold }, context.draw, 'if-moved')
    case 'unhold':
      return lane.hold === undefined ? undefined : scheduleLane({ ...lane, hold: undefined }, context.draw, 'if-moved')
  }
}

function runNow(lane: Lane, context: TransitionContext): Lane | undefined {
  const now = context.now
  if (lane.run !== undefined) {
    if (isLiveRun(lane.run, now) || lane.run.until <= now) return undefined
    return scheduleLane({ ...lane, run: { ...lane.run, until: now } }, context.draw, 'if-moved')
  }
  if (lane.waiting === 0 || lane.window <= now) return undefined
  return scheduleLane({ ...lane, window: now }, context.draw, 'if-moved')
}

/** `queueDeadLetter` counts a dead letter that an operator queued. It runs before the waiting events (L9). */
export function queueDeadLetter(lane: Lane, context: TransitionContext): Lane {
  const due = lane.queuedDeadLetters === 0 ? context.now : Math.min(lane.deadLetterDue, context.now)
  return scheduleLane(
    { ...lane, queuedDeadLetters: lane.queuedDeadLetters + 1, deadLetterDue: due },
    context.draw,
    'if-moved',
  )
}

export function unqueueDeadLetter(lane: Lane, context: TransitionContext): Lane {
  const queuedDeadLetters = lane.queuedDeadLetters - 1
  return scheduleLane(
    { ...lane, queuedDeadLetters, deadLetterDue: queuedDeadLetters === 0 ? NEVER : lane.deadLetterDue },
    context.draw,
    'if-moved',
  )
}

/** `unblockLane` removes one block. The events behind it are due by their own deadline. */
export function unblockLane(lane: Lane, context: TransitionContext): Lane {
  return scheduleLane({ ...lane, blocks: lane.blocks - 1 }, context.draw, 'if-moved')
}

/** `withdrawEvents` removes waiting events from the counts of a lane: they were dropped or purged without a run. */
export function withdrawEvents(lane: Lane, gone: WithdrawnCounts, context: TransitionContext): Lane {
  const waiting = lane.waiting - gone.waiting
  const replays = lane.replays - gone.replays
  return scheduleLane(
    {
      ...lane,
      waiting,
      bytes: lane.bytes - gone.bytes,
      window: waiting === 0 ? NEVER : lane.window,
      cap: waiting === 0 ? NEVER : lane.cap,
      hasRemaining: waiting === 0 ? false : lane.hasRemaining,
      replays,
      replayDue: replays === 0 ? NEVER : lane.replayDue,
      liveClaims: replays === 0 ? 0 : lane.liveClaims,
    },
    context.draw,
    'if-moved',
  )
}

export interface WithdrawnCounts {
  readonly waiting: number
  readonly bytes: number
  readonly replays: number
}

/** `PURGED_TEXT` replaces a text that may quote a purged event (L15). */
export const PURGED_TEXT = 'Removed by a purge.'
/** Reasons that the engine wrote, so they quote no event. */
const OWN_REASONS: ReadonlySet<string> = new Set(['', 'crashed', PURGED_TEXT])

interface RunTexts {
  readonly attempts: readonly Attempt[]
  readonly reason?: string
}

/** `withoutTexts` returns the same object if it has no text to lose. */
export function withoutTexts<T extends RunTexts>(run: T): T {
  const { attempts, reason = '' } = run
  const quotes = attempts.some(({ error }) => error !== PURGED_TEXT)
  if (!quotes && OWN_REASONS.has(reason)) return run
  const blank = attempts.map((attempt) => ({ ...attempt, error: PURGED_TEXT }))
  return { ...run, attempts: blank, ...(!OWN_REASONS.has(reason) && { reason: PURGED_TEXT }) }
}

interface Kin {
  readonly id: string
  readonly parent: string
}

/** `kinOf` returns the named runs and all runs connected to them by `parent`, in either direction: they share attempts (L8). */
export function kinOf(runs: readonly Kin[], named: ReadonlySet<string>): ReadonlySet<string> {
  const next = new Map<string, string[]>()
  const join = (from: string, to: string): void => void next.set(from, [...(next.get(from) ?? []), to])
  for (const { id, parent } of runs) {
    if (parent === '') continue
    join(id, parent)
    join(parent, id)
  }
  const found = new Set(named)
  for (const id of found) for (const kin of next.get(id) ?? []) found.add(kin)
  return found
}
