// `postBatch` builds, signs and posts one batch at the rate of its endpoint.
import { hash } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { GuardRules } from './http/addresses.ts'
import { batchBody, type DeliveredEvent } from './batch.ts'
import type { Endpoint, EndpointTarget } from './endpoint.ts'
import { responseBudget } from './outcome.ts'
import type { post, PostResult, PostDependencies, PostRequest } from './http/post.ts'
import { createSignatureHeaders } from './signing.ts'

export interface SendDependencies {
  readonly clock: Clock
  /** The time of the store. */
  readonly now: () => Millis
  readonly guardRules: GuardRules
  /** Loads the HTTP client at the first delivery. */
  readonly openTransport: () => Promise<Transport>
  readonly deadline: Millis
  readonly userAgent: string
  readonly atEndpointRate: EndpointRateGate
  /** The host name of this app, if `proof` is `cloudevents`. */
  readonly origin: string | undefined
}

/** Calls as soon as the rate of the endpoint permits, or at once without a rate. `signal` ends the wait. */
export type EndpointRateGate = <T>(endpoint: Endpoint, call: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** The HTTP client and its guarded agent. */
export interface Transport {
  readonly post: typeof post
  readonly agent: PostDependencies['agent']
}

export interface BatchToSend {
  /** The `type` of the message. */
  readonly type: string
  /** In the order of their positions in the lane (D2). */
  readonly events: readonly FlowEvent[]
  readonly signal?: AbortSignal
}

export interface PostedBatch {
  readonly posted: PostResult
  readonly ids: readonly string[]
}

export async function postBatch(deps: SendDependencies, to: EndpointTarget, what: BatchToSend): Promise<PostedBatch> {
  const { endpoint } = to
  const { events } = what
  const ids = events.map(({ id }) => id)
  const form = endpoint.form === 'events' ? EVENTS_FORM : ({ kind: 'standard', type: what.type } as const)
  const body = batchBody(form, events.map(toDeliveredEvent))
  const signed = { id: batchId(endpoint.id, what.type, ids), body, maxResponseBytes: responseBudget(ids) }
  return { posted: await postSigned(deps, to, { ...signed, signal: what.signal }), ids }
}

export interface MessageToSend extends Pick<PostRequest, 'body' | 'maxResponseBytes'> {
  /** The same for all attempts. */
  readonly id: string
  readonly signal: AbortSignal | undefined
}

/** `postSigned` posts any message, signed with the secrets of the endpoint. */
export async function postSigned(
  deps: SendDependencies,
  { endpoint, secrets, headers: extra }: EndpointTarget,
  { id, signal, ...what }: MessageToSend,
): Promise<PostResult> {
  const { clock, deadline, userAgent, guardRules: rules, origin } = deps
  const way = await deps.openTransport()
  return deps.atEndpointRate(endpoint, () => {
    const signed = createSignatureHeaders(endpoint.signing, { id, at: deps.now(), body: what.body, secrets })
    const headers = { ...JSON_BODY, ...signed, ...(origin !== undefined && { 'webhook-request-origin': origin }) }
    const request = { ...what, url: endpoint.url, headers, endpointHeaders: extra }
    const how = { agent: way.agent, clock, deadline, userAgent, ...rules }
    return way.post(request, signal === undefined ? how : { ...how, signal })
  })
}

/** A person waits for the result, so a call that would wait too long for the rate of the endpoint fails. */
export async function withinDeadline<T>(
  deps: SendDependencies,
  post: (deps: SendDependencies) => Promise<T>,
): Promise<T> {
  const up = new AbortController()
  const cancel = deps.clock.after(deps.deadline, () => up.abort(new SluiceError('CONFLICT', RATE_USED_UP)))
  try {
    return await post({ ...deps, atEndpointRate: (endpoint, call) => deps.atEndpointRate(endpoint, call, up.signal) })
  } finally {
    cancel()
  }
}

const RATE_USED_UP = 'The rate of the endpoint is used up at the moment.'
const EVENTS_FORM = { kind: 'events' } as const
const JSON_BODY = { 'content-type': 'application/json' } as const

function toDeliveredEvent({ id, source, type, time, subject = '', body }: FlowEvent): DeliveredEvent {
  return { id, source, type, time, subject, body }
}

/**
 * The same events of the same delivery to the same endpoint have the same id in every attempt and run. Another delivery
 * has another id, because its message may arrive while this one is in progress.
 */
function batchId(endpoint: Endpoint['id'], type: string, events: readonly string[]): string {
  return `msg_${hash('sha256', JSON.stringify([endpoint, type, events]), 'base64url').slice(0, 32)}`
}
