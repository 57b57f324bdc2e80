// `deliver` sends one batch to one endpoint: it finds the target, asks the breaker, posts, and reports the outcome.
// It has no retry logic of its own, because the lane of the endpoint retries.
import type { Millis } from '../clock.ts'
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
import { postBatch, type SendDependencies } from './send-batch.ts'

export interface DeliveryDependencies extends SendDependencies {
  readonly endpoints: Pick<Endpoints, 'findTarget'>
  readonly breakers: BreakerStore
  readonly histories: Pick<HistoryStore, 'note'>
  readonly emit: AnyListener
  readonly publish: (event: EventInput) => Promise<unknown>
}

export interface DeliveryBatch {
  readonly endpoint: string
  /** The name of the delivery, which is the `type` of the message. */
  readonly name: string
  readonly run: string
  /** Starts at 1. */
  readonly attempt: number
  readonly events: readonly FlowEvent[]
  readonly signal: AbortSignal
  /** Returns the earliest time of the next attempt if this one fails. */
  readonly nextAttempt: (requestedDelay: Millis | undefined) => Millis | undefined
}

export type DeliveryResult =
  | DeliveryOutcome
  /** The endpoint does not exist any more. */
  | { readonly kind: 'removed' }
  /** Held until a person ends it. */
  | { readonly kind: 'held'; readonly reason: string }
  | { readonly kind: 'wait'; readonly after: Millis }
  /** Like `ours`, but the thrown error must only be shown to the operator. */
  | { readonly kind: 'broken'; readonly error: unknown }

const UNPROVEN = 'The endpoint is not proven.'
/** In bytes; more than the history keeps. */
const MAX_RESPONSE_READ = 4_000
const DISABLED = 'The endpoint is disabled.'

export async function deliver(deps: DeliveryDependencies, batch: DeliveryBatch): Promise<DeliveryResult> {
  const target = await deps.endpoints.findTarget(batch.endpoint)
  if (target === undefined) return { kind: 'removed' }
  const held = holdReason(target.endpoint)
  if (held !== undefined) return { kind: 'held', reason: held }
  const admitted = await deps.breakers.admit(batch.endpoint, batch.run, deps.now())
  if (admitted.kind === 'wait') {
    if (admitted.until === undefined) return { kind: 'held', reason: DISABLED }
    return { kind: 'wait', after: Math.max(0, admitted.until - deps.now()) }
  }
  const { name: type, events, signal } = batch
  const { posted, ids } = await postBatch(deps, target, { type, events, signal })
  const outcome = decideOutcome(posted, ids, deps.now())
  // Sluice's own failure says nothing about the endpoint.
  if (outcome.kind === 'ours') return outcome
  noteAttempt(deps, batch, { outcome, posted })
  try {
    await reportOutcome(deps, batch, outcome, target.endpoint)
  } catch (error) {
    // The response of the endpoint stands. A delivered batch is not sent again because its bookkeeping failed. Only
    // `disable` rethrows, because nothing but that record disables the endpoint.
    if (outcome.kind === 'disable') throw error
  }
  return outcome
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
  { histories, now }: DeliveryDependencies,
  batch: DeliveryBatch,
  { outcome, posted }: BatchResult,
): void {
  const { endpoint, run, attempt, events } = batch
  const at = now()
  const answers = posted.kind === 'answered'
  const isLast = outcome.kind === 'dead' || (outcome.kind === 'retry' && batch.nextAttempt(outcome.after) === undefined)
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
    ...(events.some(({ encrypted }) => encrypted) && { confidential: true }),
  })
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
  const news = await deps.breakers.recordPost(batch.endpoint, { kind, now, next: batch.nextAttempt(after) })
  if (news === undefined) return
  const reason = 'reason' in outcome ? outcome.reason : ''
  deps.emit(`endpoint.${news}`, { endpoint: batch.endpoint, reason })
  // Two endpoints that report each other's failures would never stop. A batch of endpoint events therefore publishes
  // no new ones.
  if (!batch.events.every(isEndpointEvent)) await deps.publish(createEndpointEvent(endpoint, news, { reason, at: now }))
}
