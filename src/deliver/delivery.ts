// `deliver` sends one batch to one endpoint: it finds the target, asks the breaker, posts, and reports the outcome.
// It has no retry logic of its own, because the lane of the endpoint retries.
import type { Millis } from '../clock.ts'
import { parseDuration } from '../model/duration.ts'
import type { EventInput } from '../model/event.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { AnyListener } from '../observe/emitter.ts'
import type { BreakerStore } from './health/breaker-store.ts'
import { PAUSED, type Endpoints } from './endpoints.ts'
import type { HistoryStore } from './health/history-store.ts'
import type { Endpoint } from './endpoint.ts'
import { isEndpointEvent, createEndpointEvent } from './endpoint-events.ts'
import { decideOutcome, type DeliveryOutcome } from './outcome.ts'
import type { PostResult } from './http/post.ts'
import { RateLimitDeferred } from '../limit/run-context.ts'
import { BodyError, type BodyFunction } from './forms/message.ts'
import { createNextMessage, postMessage, type MessageFailure, type SendDependencies } from './send-batch.ts'

export interface DeliveryDependencies extends SendDependencies {
  readonly endpoints: Pick<Endpoints, 'findTarget'>
  readonly breakers: BreakerStore
  readonly histories: Pick<HistoryStore, 'note'>
  readonly emit: AnyListener
  /** Counts one POST of a delivery, or one failure of Sluice that prevented it. */
  readonly count: (delivery: string, outcome: CountedOutcome) => void
  readonly publish: (event: EventInput) => Promise<unknown>
}

/** `failed` is retried, `dead` is not, `gone` disabled the endpoint, and `skipped` is a choice of its transformation. */
type CountedOutcome = 'delivered' | 'skipped' | 'partial' | 'failed' | 'dead' | 'gone' | 'own-failure'

export interface DeliveryBatch {
  readonly endpoint: string
  /** The name of the delivery, which is the `type` of the message. */
  readonly name: string
  readonly run: string
  /** Starts at 1. */
  readonly attempt: number
  /** The replay that the events belong to; undefined for live events. */
  readonly replay: string | undefined
  readonly events: readonly FlowEvent[]
  /** The last event that an earlier attempt of this run delivered; undefined if none did. */
  readonly sent: string | undefined
  /** Builds the body instead of the form of the endpoint. */
  readonly build: BodyFunction | undefined
  readonly signal: AbortSignal
  /** Restarts the timeout of the attempt. */
  readonly extend: () => void
  /** Returns the earliest time of the next attempt if this one fails. */
  readonly nextAttempt: (requestedDelay: Millis | undefined) => Millis | undefined
}

export type DeliveryResult =
  | DeliveryOutcome
  /** The endpoint does not exist any more. */
  | { readonly kind: 'removed' }
  /** The body function of the delivery failed. */
  | { readonly kind: 'unbuilt'; readonly reason: string }
  /** The rest of the events is sent in the next attempt of the run. */
  | { readonly kind: 'later'; readonly after: Millis; readonly why: string }
  /** Held until a person ends it. */
  | { readonly kind: 'held'; readonly reason: string }
  | { readonly kind: 'wait'; readonly after: Millis }
  /** Like `ours`, but the thrown error must only be shown to the operator. */
  | { readonly kind: 'broken'; readonly error: unknown }

export interface DeliveryReport {
  readonly result: DeliveryResult
  /** The events that were not delivered, in order. */
  readonly rest: readonly FlowEvent[]
  /** How many of them were posted, and not accepted. */
  readonly tried: number
}

/** A run with one POST for each event gives other lanes a turn after this time. */
const MAX_TURN: Millis = 30_000
const NEXT_TURN: DeliveryResult = { kind: 'later', after: 0, why: 'The rest is sent in the next turn of the lane.' }
const UNPROVEN = 'The endpoint is not proven.'
/** In bytes; more than the history keeps. */
const MAX_RESPONSE_READ = 4_000
const DISABLED = 'The endpoint is disabled.'

/** `deliver` posts one message, or one after the other where the form of the endpoint holds a single event. */
export async function deliver(deps: DeliveryDependencies, batch: DeliveryBatch): Promise<DeliveryReport> {
  const began = deps.clock.monotonic()
  const resumed = batch.events.slice(batch.events.findIndex(({ id }) => id === batch.sent) + 1)
  let rest = resumed
  while (rest.length > 0) {
    let next: NextDelivery
    try {
      next = await deliverNext(deps, { ...batch, events: rest })
    } catch (error) {
      // What was delivered must not be sent again, so only the first POST may fail the attempt.
      if (rest === resumed) throw error
      next = untried(toInterruption(error))
    }
    const { result, tried } = next
    if (result.kind !== 'delivered') return { result, rest, tried }
    rest = rest.slice(tried)
    if (rest.length === 0) break
    if (deps.clock.monotonic() - began > MAX_TURN) return { result: NEXT_TURN, rest, tried: 0 }
    batch.extend()
  }
  return { result: { kind: 'delivered' }, rest, tried: 0 }
}

interface NextDelivery {
  readonly result: DeliveryResult
  /** How many events the message holds. */
  readonly tried: number
}

async function deliverNext(deps: DeliveryDependencies, batch: DeliveryBatch): Promise<NextDelivery> {
  const { name: type, replay, build, signal } = batch
  const target = await deps.endpoints.findTarget(batch.endpoint)
  if (target === undefined) return untried({ kind: 'removed' })
  const held = holdReason(target.endpoint)
  if (held !== undefined) return untried({ kind: 'held', reason: held })
  const message = await createNextMessage(deps, target, { type, events: batch.events, replay, build })
  if ('error' in message) return unsent(deps, type, message)
  if ('isSkipped' in message) {
    deps.count(type, 'skipped')
    return { result: { kind: 'delivered' }, tried: message.events.length }
  }
  const admitted = await deps.breakers.admit(batch.endpoint, batch.run, deps.now())
  if (admitted.kind === 'wait') {
    if (admitted.until === undefined) return untried({ kind: 'held', reason: DISABLED })
    return untried({ kind: 'wait', after: Math.max(0, admitted.until - deps.now()) })
  }
  const posted = await postMessage(deps, target, message, signal)
  const sent = { ...batch, events: message.events }
  const tried = message.events.length
  const outcome = decideOutcome(
    posted,
    sent.events.map(({ id }) => id),
    deps.now(),
  )
  // Sluice's own failure says nothing about the endpoint.
  if (outcome.kind === 'ours') return { result: outcome, tried }
  noteAttempt(deps, sent, { outcome, posted })
  // The breaker of a healthy endpoint stays as it is, so most POSTs need not report.
  const isHealthy = deps.breakers.isHealthy(batch.endpoint)
  if (isHealthy && (outcome.kind === 'delivered' || outcome.kind === 'partly')) return { result: outcome, tried }
  try {
    await reportOutcome(deps, sent, outcome, target.endpoint)
  } catch (error) {
    // The response of the endpoint stands. A delivered batch is not sent again because its bookkeeping failed. Only
    // `disable` rethrows, because nothing but that record disables the endpoint.
    if (outcome.kind === 'disable') throw error
  }
  return { result: outcome, tried }
}

/** A body function may work the next time; a transformation gets the same input each time and would fail again. */
function unsent(deps: DeliveryDependencies, delivery: string, { events, error }: MessageFailure): NextDelivery {
  if (error instanceof BodyError) return untried({ kind: 'unbuilt', reason: error.message })
  deps.count(delivery, 'dead')
  return { result: { kind: 'dead', reason: error.message }, tried: events.length }
}

function untried(result: DeliveryResult): NextDelivery {
  return { result, tried: 0 }
}

function toInterruption(error: unknown): DeliveryResult {
  if (!(error instanceof RateLimitDeferred)) return { kind: 'broken', error }
  return { kind: 'later', after: error.after, why: error.message }
}

/** `holdReason` returns why the endpoint waits until a person acts: it is not proven, or paused. */
export function holdReason({ proof, active }: Pick<Endpoint, 'proof' | 'active'>): string | undefined {
  if (proof === 'pending') return UNPROVEN
  return active ? undefined : PAUSED
}

interface BatchResult {
  readonly outcome: DeliveryOutcome
  readonly posted: PostResult
}

function noteAttempt(
  { histories, count, now }: DeliveryDependencies,
  batch: DeliveryBatch,
  { outcome, posted }: BatchResult,
): void {
  const { endpoint, run, attempt, events } = batch
  const at = now()
  const answers = posted.kind === 'answered'
  const isLast = outcome.kind === 'dead' || (outcome.kind === 'retry' && batch.nextAttempt(outcome.after) === undefined)
  count(batch.name, toCountedOutcome(outcome.kind, isLast))
  histories.note(endpoint, {
    run,
    attempt,
    at,
    ms: Math.round(posted.ms),
    status: answers ? posted.status : undefined,
    answer: answers ? posted.body.subarray(0, MAX_RESPONSE_READ).toString() : '',
    // A partly accepted batch counts as delivered; the rest becomes a batch of its own.
    error: 'reason' in outcome && outcome.kind !== 'partly' ? outcome.reason : '',
    latency: at - events.reduce((oldest, { time }) => Math.min(oldest, time), at),
    isLast,
    first: events[0]?.id ?? '',
    last: events.at(-1)?.id ?? '',
    ...(events.some(({ encrypted }) => encrypted) && { confidential: true }),
  })
}

function toCountedOutcome(kind: DeliveryOutcome['kind'], isLast: boolean): CountedOutcome {
  if (isLast) return 'dead'
  return kind === 'partly' ? 'partial' : kind === 'disable' ? 'gone' : kind === 'delivered' ? kind : 'failed'
}

async function reportOutcome(
  deps: DeliveryDependencies,
  batch: DeliveryBatch,
  outcome: DeliveryOutcome,
  endpoint: Endpoint,
): Promise<void> {
  const now = deps.now()
  const after = outcome.kind === 'retry' ? outcome.after : undefined
  const kind =
    outcome.kind === 'disable' ? 'gone' : outcome.kind === 'retry' || outcome.kind === 'dead' ? 'failed' : 'ok'
  const news = await deps.breakers.recordPost(batch.endpoint, {
    kind,
    now,
    next: batch.nextAttempt(after),
    disableAfter: endpoint.disableAfter === null ? Infinity : parseDuration(endpoint.disableAfter, 'disableAfter'),
  })
  if (news === undefined) return
  const reason = 'reason' in outcome ? outcome.reason : ''
  deps.emit(`endpoint.${news}`, { endpoint: batch.endpoint, reason })
  // Two endpoints that report each other's failures would never stop. A batch of endpoint events therefore publishes
  // no new ones.
  if (!batch.events.every(isEndpointEvent)) await deps.publish(createEndpointEvent(endpoint, news, { reason, at: now }))
}
