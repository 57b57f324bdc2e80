// What an attempt's end means for its run: pure, from how the handler ended to what the store is told (L6c, L8, L9, M6).
import type { Millis } from '../clock.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { Flow } from '../model/flow.ts'
import type { Outcome } from '../model/settle.ts'
import { PutOff } from '../scope.ts'
import type { Lease } from '../store/contract/index.ts'
import { isEnding, PermanentError, type Ending } from './endings.ts'

/** Why a run's signal was aborted. */
export type AbortCause = 'timeout' | 'cancel' | 'stop' | 'lost' | 'purged'

export type HowItEnded =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** It did not end: time was up. */
  | { readonly kind: 'timed-out' }

export interface Circumstances {
  readonly flow: Flow
  readonly lease: Lease
  readonly cause: AbortCause | undefined
  readonly committed: boolean
  /** The store's time. */
  readonly now: Millis
  readonly againFor: Millis
  /** In [0, 1). */
  readonly chance: () => number
  /** What `again` keeps beside the handler's own state. */
  readonly keep: (state: unknown) => string
  /** The same as it was. */
  readonly givenBack: () => string
  /** The same as it was, and which limit put the run off. */
  readonly putOff: (limit: string) => string
  /** Otherwise it was put off in the middle before, and its calls are in vain again. */
  readonly mayBePutOff: boolean
}

export interface Verdict {
  readonly outcome: Outcome
  /** Of a failed attempt. */
  readonly error: string | undefined
  /** Whether what the handler published counts. */
  readonly publishes: boolean
  /** Of a run that is given back. */
  readonly why?: string
}

const ERROR_LENGTH_MAX = 4_000

export function verdictOf(ended: HowItEnded, at: Circumstances): Verdict {
  if (ended.kind === 'timed-out') return failed(`It took longer than its timeout of ${at.flow.timeout} ms.`, at)
  if (ended.kind === 'threw') return ofError(ended.error, at)
  const { value } = ended
  if (value === undefined) return well({ kind: 'done' })
  if (!isEnding(value)) {
    return failed(
      `It returned ${kindOf(value)}, which is no ending; return nothing, or one of done, again, retry, drop and partial.`,
      at,
    )
  }
  try {
    return ofEnding(value, at)
  } catch (error) {
    // Durations and states are the handler's own: one that is nonsense costs it the attempt.
    return failed(textOf(error), at)
  }
}

function ofEnding(ending: Ending, at: Circumstances): Verdict {
  switch (ending.kind) {
    case 'done':
      return well({ kind: 'done' })
    case 'drop':
      return well({ kind: 'dropped', reason: text(ending.reason, 'drop') })
    case 'again': {
      const since = at.lease.againSince === 0 ? at.now : at.lease.againSince
      const after = millis(ending.after, 'again.after')
      if (at.now + after - since > at.againFor)
        return failed(`It says again for more than ${at.againFor} ms in all.`, at)
      return well({ kind: 'again', after, state64: at.keep(ending.state) })
    }
    case 'retry':
      return failed(text(ending.reason, 'retry'), at, millis(ending.after, 'retry.after'))
    case 'partial':
      return ofPartial(ending.failed, at)
    case 'given-back':
      return givenBack(millis(ending.after, 'after'), at.givenBack(), ending.why)
  }
}

function ofPartial(list: readonly { id: string; reason: string; permanent?: boolean }[], at: Circumstances): Verdict {
  if (list.length === 0) return well({ kind: 'done' })
  const known = new Set(at.lease.events.map((event) => event.id))
  const strange = list.find(({ id }) => !known.has(id))
  if (strange !== undefined)
    return failed(`partial names ${JSON.stringify(strange.id)}, which is no event of this run.`, at)
  const delay = delayOf(at, 0)
  const lastTry = delay === undefined
  const gone = new Set(list.filter(({ permanent }) => lastTry || permanent === true).map(({ id }) => id))
  const retry = list.map(({ id }) => id).filter((id) => !gone.has(id))
  const reason = cut([...new Set(list.map((one) => one.reason))].join('; '))
  const block = at.flow.onDead === 'block'
  return {
    outcome: { kind: 'partial', retry, after: delay ?? 0, dead: [...gone], reason, block },
    error: reason,
    publishes: true,
  }
}

function ofError(error: unknown, at: Circumstances): Verdict {
  if (at.cause === 'timeout') return verdictOf({ kind: 'timed-out' }, at)
  if (at.cause === 'cancel' && !at.committed) return well({ kind: 'cancelled' }, false)
  if (at.cause === 'stop') return givenBack(0, at.givenBack(), 'Its process stops.')
  const putOff = putOffIn(error)
  if (putOff !== undefined) {
    if (at.mayBePutOff) return givenBack(putOff.after, at.putOff(putOff.limit), putOff.message)
    return failed(`It had made calls, and was put off by limit ${putOff.limit} once more.`, at, putOff.after)
  }
  if (error instanceof PermanentError) return dead(textOf(error), at)
  return failed(textOf(error), at, retryAfterOf(error))
}

const CAUSES_MAX = 10

/** Clients wrap what their `fetch` throws. */
function putOffIn(error: unknown): PutOff | undefined {
  let one = error
  for (let depth = 0; depth < CAUSES_MAX && one instanceof Error; depth++) {
    if (one instanceof PutOff) return one
    one = one.cause
  }
  return undefined
}

function delayOf(at: Circumstances, asked: Millis): Millis | undefined {
  const { tries, failingSince } = at.lease
  const elapsed = failingSince === 0 ? 0 : at.now - failingSince
  return at.flow.delay({ failures: tries + 1, elapsed, chance: at.chance(), asked })
}

function failed(error: string, at: Circumstances, asked: Millis = 0): Verdict {
  const after = delayOf(at, asked)
  if (after === undefined) return dead(error, at)
  return { outcome: { kind: 'retry', after }, error: cut(error), publishes: false }
}

function dead(error: string, at: Circumstances): Verdict {
  const reason = cut(error)
  return { outcome: { kind: 'dead', reason, block: at.flow.onDead === 'block' }, error: reason, publishes: false }
}

function well(outcome: Outcome, publishes = true): Verdict {
  return { outcome, error: undefined, publishes }
}

function givenBack(after: Millis, state64: string, why: string): Verdict {
  return { ...well({ kind: 'released', after, state64 }, false), why }
}

/** An error may say how long to wait: `retryAfter`, a duration. One that is nonsense is not obeyed. */
function retryAfterOf(error: unknown): Millis {
  try {
    const said = typeof error === 'object' && error !== null && 'retryAfter' in error ? error.retryAfter : 0
    return millis(said as Duration, 'retryAfter')
  } catch {
    return 0
  }
}

function textOf(error: unknown): string {
  try {
    if (error instanceof Error) return `${error.name}: ${error.message}`
    return `It threw ${typeof error === 'string' ? JSON.stringify(error.slice(0, 200)) : kindOf(error)}.`
  } catch {
    return 'It threw an error that cannot be read.'
  }
}

/** Only what it is: what it says may be a payload. */
function kindOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value
}

/** A reason is the handler's own, and whatever else it may be, it is no text of a store. */
function text(reason: unknown, ending: string): string {
  if (typeof reason === 'string') return cut(reason)
  throw new TypeError(`${ending} has ${kindOf(reason)} for a reason; give it a text.`)
}

function cut(whole: string): string {
  return whole.length > ERROR_LENGTH_MAX ? `${whole.slice(0, ERROR_LENGTH_MAX)}…` : whole
}
