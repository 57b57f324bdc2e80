// `decideVerdict` maps how a handler ended to the outcome that the store gets, as a pure function (L6c, L8, L9, M6).
import type { Millis } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { Flow } from '../model/flow.ts'
import type { RunOutcome } from '../model/settle.ts'
import { RateLimitDeferred } from '../limit/run-context.ts'
import { isEnding, PermanentError, type Ending, type FailedEvent } from '../model/endings.ts'
import { clearDeferral, serializeRunState, type LiveRun } from './live-run.ts'

export type HandlerResult =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** The handler did not return before its timeout. */
  | { readonly kind: 'timed-out' }

/** `EndedAttempt` is what the verdict depends on besides how the handler ended. */
export interface EndedAttempt {
  readonly live: LiveRun
  readonly flow: Flow
  /** Returns the estimated time of the store. */
  readonly storeTime: () => Millis
  readonly snoozeLimit: Millis
  /** In [0, 1). */
  readonly random: () => number
  /** How many events the handler published. */
  readonly published: number
}

export interface Verdict {
  readonly outcome: RunOutcome
  /** The error of a failed attempt. */
  readonly error: string | undefined
  /** Whether the store keeps the events that the handler published. */
  readonly publishes: boolean
  /** Why the run was given back. */
  readonly why?: string
}

const MAX_ERROR_LENGTH = 4_000

export function decideVerdict(ended: HandlerResult, at: EndedAttempt): Verdict {
  if (ended.kind === 'timed-out') return failedVerdict(`It took longer than its timeout of ${at.flow.timeout} ms.`, at)
  if (ended.kind === 'threw') return decideByError(ended.error, at)
  // After `commit` returned `cancelled`, a newer run takes the events, and the result of the handler does not count (L6c).
  if (at.live.commit === 'cancelled') return endedVerdict({ kind: 'cancelled' }, false)
  const verdict = decideByValue(ended.value, at)
  if (at.live.commit === 'unanswered' && verdict.publishes) return decideByError(new Error(COMMIT_FAILED), at)
  return verdict
}

const COMMIT_FAILED = 'run.commit() failed, and the handler returned all the same. Let its error through.'

function decideByValue(value: unknown, at: EndedAttempt): Verdict {
  if (value === undefined) return endedVerdict({ kind: 'done' })
  if (!isEnding(value)) {
    return failedVerdict(
      `It returned ${describeKind(value)}, which is not an ending; return nothing, or done, snooze, retry, drop or partial.`,
      at,
    )
  }
  try {
    return decideByEnding(value, at)
  } catch (error) {
    // An invalid duration or state is the handler's fault and fails the attempt.
    return failedVerdict(describeError(error), at)
  }
}

function decideByEnding(ending: Ending, at: EndedAttempt): Verdict {
  switch (ending.kind) {
    case 'done':
      return endedVerdict({ kind: 'done' })
    case 'drop':
      return endedVerdict({ kind: 'dropped', reason: assertReason(ending.reason, 'drop') })
    case 'snoozed': {
      const now = at.storeTime()
      const since = at.live.lease.snoozedSince === 0 ? now : at.live.lease.snoozedSince
      const after = parseDuration(ending.after, 'snooze.after')
      if (now + after - since > at.snoozeLimit)
        return failedVerdict(`It snoozed for more than ${at.snoozeLimit} ms in total.`, at)
      const published = at.live.storedState.published + at.published
      return endedVerdict({ kind: 'snoozed', after, state64: serializeRunState({ published, state: ending.state }) })
    }
    case 'retry':
      return failedVerdict(assertReason(ending.reason, 'retry'), at, parseDuration(ending.after, 'retry.after'))
    case 'partial':
      return decidePartial(ending, at)
    case 'given-back':
      return releasedVerdict(parseDuration(ending.after, 'after'), releasedState(ending.state, at), ending.why)
  }
}

function releasedState(state: unknown, { live }: EndedAttempt): string {
  if (state === undefined) return clearDeferral(live.lease.stateBase64)
  return serializeRunState({ published: live.storedState.published, state })
}

function decidePartial({ failed: list, after }: Extract<Ending, { kind: 'partial' }>, at: EndedAttempt): Verdict {
  if (list.length === 0) return endedVerdict({ kind: 'done' })
  const known = new Set(at.live.lease.events.map((event) => event.id))
  const strange = list.find(({ id }) => !known.has(id))
  if (strange !== undefined)
    return failedVerdict(`partial names ${JSON.stringify(strange.id)}, which is no event of this run.`, at)
  const delay = nextDelay(at, parseDuration(after, 'partial.after'))
  const isGone = ({ permanent, untried }: FailedEvent): boolean =>
    permanent === true || (delay === undefined && untried !== true)
  const gone = new Set(list.filter(isGone).map(({ id }) => id))
  const retry = list.map(({ id }) => id).filter((id) => !gone.has(id))
  const reason = truncate([...new Set(list.map((one) => one.reason))].join('; '))
  const block = at.flow.onDead === 'block'
  return {
    outcome: { kind: 'partial', retry, after: delay ?? 0, dead: [...gone], reason, block },
    error: reason,
    publishes: true,
  }
}

function decideByError(error: unknown, at: EndedAttempt): Verdict {
  if (at.live.abortCause === 'timeout') return decideVerdict({ kind: 'timed-out' }, at)
  if (at.live.abortCause === 'cancel' && at.live.commit !== 'ok') return endedVerdict({ kind: 'cancelled' }, false)
  if (at.live.abortCause === 'stop')
    return releasedVerdict(0, clearDeferral(at.live.lease.stateBase64), 'Its process stops.')
  const deferral = findDeferral(error)
  if (deferral !== undefined) {
    if (at.live.mayBeDeferred())
      return releasedVerdict(deferral.after, deferredState(at.live, deferral.limit), deferral.message)
    return failedVerdict(
      `The run had made calls, and was deferred by limit ${deferral.limit} once more.`,
      at,
      deferral.after,
    )
  }
  if (error instanceof PermanentError) return deadVerdict(describeError(error), at)
  return failedVerdict(describeError(error), at, readRetryAfter(error))
}

/** `deferredState` is the stored state with the limit that deferred the run. */
function deferredState({ storedState, hasCalled }: LiveRun, limit: string): string {
  return serializeRunState({ ...storedState, deferredBy: limit, ...(hasCalled && { midway: true }) })
}

const CAUSES_MAX = 10

/** `findDeferral` also searches the causes, because clients wrap what their `fetch` throws. */
function findDeferral(error: unknown): RateLimitDeferred | undefined {
  let one = error
  for (let depth = 0; depth < CAUSES_MAX && one instanceof Error; depth++) {
    if (one instanceof RateLimitDeferred) return one
    one = one.cause
  }
  return undefined
}

function nextDelay(at: EndedAttempt, asked: Millis): Millis | undefined {
  const { tries, failingSince } = at.live.lease
  const elapsed = failingSince === 0 ? 0 : at.storeTime() - failingSince
  return at.flow.retryDelay({ failures: tries + 1, elapsed, random: at.random(), requestedDelay: asked })
}

function failedVerdict(error: string, at: EndedAttempt, asked: Millis = 0): Verdict {
  const after = nextDelay(at, asked)
  if (after === undefined) return deadVerdict(error, at)
  return { outcome: { kind: 'retry', after }, error: truncate(error), publishes: false }
}

function deadVerdict(error: string, at: EndedAttempt): Verdict {
  const reason = truncate(error)
  return { outcome: { kind: 'dead', reason, block: at.flow.onDead === 'block' }, error: reason, publishes: false }
}

function endedVerdict(outcome: RunOutcome, publishes = true): Verdict {
  return { outcome, error: undefined, publishes }
}

function releasedVerdict(after: Millis, state64: string, why: string): Verdict {
  return { ...endedVerdict({ kind: 'released', after, state64 }, false), why }
}

/** `readRetryAfter` reads the duration `retryAfter` of an error. It ignores an invalid one. */
function readRetryAfter(error: unknown): Millis {
  try {
    const said = typeof error === 'object' && error !== null && 'retryAfter' in error ? error.retryAfter : 0
    return parseDuration(said as Duration, 'retryAfter')
  } catch {
    return 0
  }
}

function describeError(error: unknown): string {
  try {
    if (error instanceof Error) return `${error.name}: ${error.message}`
    return `It threw ${typeof error === 'string' ? JSON.stringify(error.slice(0, 200)) : describeKind(error)}.`
  } catch {
    return 'It threw an error that cannot be read.'
  }
}

/** `describeKind` returns only the type, because the value may contain a payload. */
function describeKind(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value
}

/** `assertReason` rejects a reason of another type, because the handler may return anything and the store needs text. */
function assertReason(reason: unknown, ending: string): string {
  if (typeof reason === 'string') return truncate(reason)
  throw new TypeError(`${ending} has ${describeKind(reason)} for a reason; give it a text.`)
}

function truncate(whole: string): string {
  return whole.length > MAX_ERROR_LENGTH ? `${whole.slice(0, MAX_ERROR_LENGTH)}…` : whole
}
