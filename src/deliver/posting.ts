// One batch on its way to one endpoint: put in order, shaped, signed, posted at the endpoint's pace.
import { hash } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { GuardRules } from './addresses.ts'
import { batchBody, inOrder, type DeliveredEvent } from './batch.ts'
import type { Endpoint } from './endpoint.ts'
import type { Addressed } from './endpoints.ts'
import { answerRoom } from './outcome.ts'
import type { post, Posted, PostParts, PostRequest } from './post.ts'
import { signedHeaders } from './signing.ts'

export interface PostingParts {
  readonly clock: Clock
  /** The store's time. */
  readonly now: () => Millis
  readonly rules: GuardRules
  /** Loaded when something is first delivered. */
  readonly way: () => Promise<Way>
  readonly deadline: Millis
  readonly userAgent: string
  readonly paced: Paced
  /** Who we are, where the other side was asked for leave by that name. */
  readonly origin: string | undefined
}

/** Calls as soon as the rate of the endpoint lets it, if it has one. `signal` ends the wait. */
export type Paced = <T>(endpoint: Endpoint, call: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** The way out. */
export interface Way {
  readonly post: typeof post
  readonly agent: PostParts['agent']
}

export interface ToPost {
  /** Of the batch. */
  readonly type: string
  readonly events: readonly FlowEvent[]
  readonly signal?: AbortSignal
}

export interface PostedBatch {
  readonly posted: Posted
  readonly ids: readonly string[]
}

export async function postBatch(parts: PostingParts, to: Addressed, what: ToPost): Promise<PostedBatch> {
  const { endpoint } = to
  const events = inOrder(what.events)
  const ids = events.map(({ id }) => id)
  const form = endpoint.form === 'events' ? EVENTS : ({ kind: 'standard', type: what.type } as const)
  const body = batchBody(form, events.map(deliverable))
  const signed = { id: batchId(endpoint.id, what.type, ids), body, maxAnswer: answerRoom(ids) }
  return { posted: await postSigned(parts, to, { ...signed, signal: what.signal }), ids }
}

export interface ToSend extends Pick<PostRequest, 'body' | 'maxAnswer'> {
  /** The same over all tries. */
  readonly id: string
  readonly signal: AbortSignal | undefined
}

/** Anything, in the endpoint's name. */
export async function postSigned(
  parts: PostingParts,
  { endpoint, secrets, headers: extra }: Addressed,
  { id, signal, ...what }: ToSend,
): Promise<Posted> {
  const { clock, deadline, userAgent, rules, origin } = parts
  const way = await parts.way()
  return parts.paced(endpoint, () => {
    const signed = signedHeaders(endpoint.signing, { id, at: parts.now(), body: what.body, secrets })
    const headers = { ...JSON_BODY, ...signed, ...(origin !== undefined && { 'webhook-request-origin': origin }) }
    const request = { ...what, url: endpoint.url, headers, extra }
    const how = { agent: way.agent, clock, deadline, userAgent, allowLoopback: rules.allowLoopback ?? false }
    return way.post(request, signal === undefined ? how : { ...how, signal })
  })
}

/** Somebody waits for the answer: a rate that is used up for long is the answer. */
export async function impatiently<T>(parts: PostingParts, post: (parts: PostingParts) => Promise<T>): Promise<T> {
  const up = new AbortController()
  const cancel = parts.clock.after(parts.deadline, () => up.abort(new SluiceError('NOT_POSSIBLE', RATE_USED_UP)))
  try {
    return await post({ ...parts, paced: (endpoint, call) => parts.paced(endpoint, call, up.signal) })
  } finally {
    cancel()
  }
}

const RATE_USED_UP = 'The rate of the endpoint leaves no room for that just now.'
const EVENTS = { kind: 'events' } as const
const JSON_BODY = { 'content-type': 'application/json' } as const

function deliverable({ id, source, type, time, subject = '', body }: FlowEvent): DeliveredEvent {
  return { id, source, type, time, subject, body }
}

/**
 * The same events by the same delivery to the same endpoint: the same name, however often they are tried, and by whatever run. By
 * another delivery they are another message: it may have come while this one is still under way.
 */
function batchId(endpoint: Endpoint['id'], type: string, events: readonly string[]): string {
  return `msg_${hash('sha256', JSON.stringify([endpoint, type, events]), 'base64url').slice(0, 32)}`
}
