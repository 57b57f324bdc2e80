// One batch to one endpoint: looked up, admitted, posted, and what became of it. Tries again by no rule of its own: the lane of
// the endpoint does that.
import type { Millis } from '../clock.ts'
import type { EventInput } from '../model/event-input.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { AnyListener } from '../observe/events.ts'
import type { Breakers } from './breakers.ts'
import { PAUSED, type Addressed, type Endpoints } from './endpoints.ts'
import type { Histories } from './histories.ts'
import type { Endpoint } from './endpoint.ts'
import { isNews, newsOf } from './news.ts'
import { outcomeOf, type DeliveryOutcome } from './outcome.ts'
import type { Posted } from './post.ts'
import { postBatch, type PostingParts } from './posting.ts'

export interface DeliverParts extends PostingParts {
  readonly endpoints: Pick<Endpoints, 'addressed'>
  readonly breakers: Breakers
  readonly histories: Pick<Histories, 'note'>
  readonly emit: AnyListener
  readonly publish: (event: EventInput) => Promise<unknown>
}

export interface Batch {
  readonly endpoint: string
  /** The name of the delivery: the type of what is sent. */
  readonly name: string
  readonly run: string
  /** Counted from 1. */
  readonly attempt: number
  readonly events: readonly FlowEvent[]
  readonly signal: AbortSignal
  /** When it is tried again at the earliest, should this fail. */
  readonly next: (asked: Millis | undefined) => Millis | undefined
}

export type Delivered =
  | DeliveryOutcome
  /** Nobody is there to deliver to. */
  | { readonly kind: 'removed' }
  /** Until a person says so. */
  | { readonly kind: 'held'; readonly reason: string }
  | { readonly kind: 'wait'; readonly after: Millis }
  /** As `ours`, but what was thrown is for us alone to read. */
  | { readonly kind: 'broken'; readonly error: unknown }

const UNPROVEN = 'The endpoint is not proven.'
/** Bytes: more than is kept of it. */
const ANSWER_READ = 4_000
const DISABLED = 'The endpoint is disabled.'

export async function deliver(parts: DeliverParts, batch: Batch): Promise<Delivered> {
  const addressed = await parts.endpoints.addressed(batch.endpoint)
  if (addressed === undefined) return { kind: 'removed' }
  const held = whyHeld(addressed.endpoint)
  if (held !== undefined) return { kind: 'held', reason: held }
  const admitted = await parts.breakers.admit(batch.endpoint, batch.run, parts.now())
  if (admitted.kind === 'wait') {
    if (admitted.until === undefined) return { kind: 'held', reason: DISABLED }
    return { kind: 'wait', after: Math.max(0, admitted.until - parts.now()) }
  }
  const { outcome, posted } = await sent(parts, batch, addressed)
  // What was our own fault says nothing of the endpoint.
  if (outcome.kind === 'ours') return outcome
  note(parts, batch, { outcome, posted })
  try {
    await told(parts, batch, { outcome, endpoint: addressed.endpoint })
  } catch (error) {
    // What the endpoint has answered stands: a batch that it has is not sent again because we could not note how it fares. But it is
    // disabled by nothing else than that note.
    if (outcome.kind === 'disable') throw error
  }
  return outcome
}

/** Why nothing is posted to it until a person says so, however it fares. */
export function whyHeld({ proof, active }: Pick<Endpoint, 'proof' | 'active'>): string | undefined {
  if (proof === 'pending') return UNPROVEN
  return active ? undefined : PAUSED
}

interface Sent {
  readonly outcome: DeliveryOutcome
  readonly posted: Posted
}

async function sent(parts: DeliverParts, { name, events, signal }: Batch, to: Addressed): Promise<Sent> {
  const { posted, ids } = await postBatch(parts, to, { type: name, events, signal })
  return { outcome: outcomeOf(posted, ids, parts.now()), posted }
}

function note({ histories, now }: DeliverParts, batch: Batch, { outcome, posted }: Sent): void {
  const { endpoint, run, attempt, events } = batch
  const at = now()
  const answers = posted.kind === 'answered'
  const isLast = outcome.kind === 'dead' || (outcome.kind === 'retry' && batch.next(outcome.after) === undefined)
  histories.note(endpoint, {
    run,
    attempt,
    at,
    ms: Math.round(posted.ms),
    status: answers ? posted.status : undefined,
    answer: answers ? posted.body.subarray(0, ANSWER_READ).toString() : '',
    // What was accepted in part is delivered: the rest is a batch of its own.
    error: 'reason' in outcome && outcome.kind !== 'partly' ? outcome.reason : '',
    latency: at - events.reduce((oldest, { time }) => Math.min(oldest, time), at),
    isLast,
  })
}

interface Ended {
  readonly outcome: DeliveryOutcome
  readonly endpoint: Endpoint
}

async function told(parts: DeliverParts, batch: Batch, { outcome, endpoint }: Ended): Promise<void> {
  const now = parts.now()
  const after = outcome.kind === 'retry' ? outcome.after : undefined
  const kind =
    outcome.kind === 'disable' ? 'gone' : outcome.kind === 'retry' || outcome.kind === 'dead' ? 'failed' : 'ok'
  const news = await parts.breakers.ended(batch.endpoint, { kind, now, next: batch.next(after) })
  if (news === undefined) return
  const reason = 'reason' in outcome ? outcome.reason : ''
  parts.emit(`endpoint.${news}`, { endpoint: batch.endpoint, reason })
  // Two endpoints that tell each other how they fail would never end: what came of nothing but news is none itself.
  if (!batch.events.every(isNews)) await parts.publish(newsOf(endpoint, news, { reason, at: now }))
}
