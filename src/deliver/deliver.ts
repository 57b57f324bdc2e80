// One batch to one endpoint: looked up, admitted, signed, posted, and what became of it. Tries again by no rule of its own:
// the lane of the endpoint does that.
import { hash } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { AnyListener } from '../observe/events.ts'
import type { GuardRules } from './addresses.ts'
import { batchBody, inOrder, type DeliveredEvent } from './batch.ts'
import { admit } from './breaker.ts'
import type { Breakers } from './breakers.ts'
import { PAUSED, type Addressed, type Endpoints } from './endpoints.ts'
import { answerRoom, outcomeOf, type DeliveryOutcome } from './outcome.ts'
import type { post, PostParts } from './post.ts'
import { signedHeaders } from './signing.ts'

export interface DeliverParts {
  readonly endpoints: Pick<Endpoints, 'addressed'>
  readonly breakers: Breakers
  readonly clock: Clock
  /** The store's time. */
  readonly now: () => Millis
  readonly rules: GuardRules
  /** Loaded when something is first delivered. */
  readonly way: () => Promise<Way>
  readonly deadline: Millis
  readonly userAgent: string
  readonly emit: AnyListener
}

/** The way out. */
export interface Way {
  readonly post: typeof post
  readonly agent: PostParts['agent']
}

export interface Batch {
  readonly endpoint: string
  /** The name of the delivery: the type of what is sent. */
  readonly name: string
  readonly run: string
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

const DISABLED = 'The endpoint is disabled.'

export async function deliver(parts: DeliverParts, batch: Batch): Promise<Delivered> {
  const addressed = await parts.endpoints.addressed(batch.endpoint)
  if (addressed === undefined) return { kind: 'removed' }
  if (!addressed.endpoint.active) return { kind: 'held', reason: PAUSED }
  const breaker = await parts.breakers.of(batch.endpoint)
  const admitted = admit(breaker, batch.run, parts.now())
  if (admitted.kind === 'wait') {
    if (admitted.until === undefined) return { kind: 'held', reason: DISABLED }
    return { kind: 'wait', after: Math.max(0, admitted.until - parts.now()) }
  }
  if (admitted.breaker !== breaker) {
    await parts.breakers.set(batch.endpoint, () => admitted.breaker)
  }
  const outcome = await posted(parts, batch, addressed)
  try {
    await told(parts, batch, outcome)
  } catch {
    // What the endpoint has answered stands: a batch that it has is not sent again because we could not note how it fares.
  }
  return outcome
}

async function posted(parts: DeliverParts, batch: Batch, { endpoint, secrets }: Addressed): Promise<DeliveryOutcome> {
  const events = inOrder(batch.events)
  const ids = events.map(({ id }) => id)
  const form = endpoint.form === 'events' ? EVENTS : ({ kind: 'standard', type: batch.name } as const)
  const body = batchBody(form, events.map(deliverable))
  const signed = signedHeaders(endpoint.signing, { id: batchId(endpoint.id, ids), at: parts.now(), body, secrets })
  const way = await parts.way()
  const request = {
    url: endpoint.url,
    body,
    headers: { 'content-type': 'application/json', ...signed },
    extra: endpoint.headers,
    maxAnswer: answerRoom(ids),
  }
  const { clock, deadline, userAgent, rules } = parts
  const answer = await way.post(request, {
    agent: way.agent,
    clock,
    deadline,
    userAgent,
    signal: batch.signal,
    ...rules,
  })
  return outcomeOf(answer, ids, parts.now())
}

const EVENTS = { kind: 'events' } as const

function deliverable({ id, source, type, time, subject = '', body }: FlowEvent): DeliveredEvent {
  return { id, source, type, time, subject, body }
}

/** The same events to the same endpoint: the same name, however often they are tried, and by whatever run. */
function batchId(endpoint: string, events: readonly string[]): string {
  return `msg_${hash('sha256', JSON.stringify([endpoint, events]), 'base64url').slice(0, 32)}`
}

/** What was our own fault says nothing of the endpoint. */
async function told(parts: DeliverParts, batch: Batch, outcome: DeliveryOutcome): Promise<void> {
  if (outcome.kind === 'ours') return
  const now = parts.now()
  const after = outcome.kind === 'retry' ? outcome.after : undefined
  const kind =
    outcome.kind === 'disable' ? 'gone' : outcome.kind === 'retry' || outcome.kind === 'dead' ? 'failed' : 'ok'
  const news = await parts.breakers.ended(batch.endpoint, { kind, now, next: batch.next(after) })
  if (news === undefined) return
  const reason = 'reason' in outcome ? outcome.reason : ''
  parts.emit(`endpoint.${news}`, { endpoint: batch.endpoint, reason })
}
