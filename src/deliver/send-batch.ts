// `createNextMessage` turns the events of a batch into a message, and `postMessage` signs and posts it at the rate of its endpoint.
import { hash } from 'node:crypto'
import type { Clock, Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import type { GuardRules } from './http/addresses.ts'
import { BodyError, createContent, type BodyFunction } from './forms/message.ts'
import { isSingleEventForm } from './forms/form.ts'
import type { Endpoint, EndpointTarget } from './endpoint.ts'
import { responseBudget } from './outcome.ts'
import type { HeaderMap } from './http/headers.ts'
import type { post, PostResult, PostDependencies, PostRequest } from './http/post.ts'
import { createSignatureHeaders } from './signing.ts'
import { TransformError } from './transform/output.ts'
import type { Transforms } from './transform/transforms.ts'

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
  /** Runs the transformation of the endpoint, if it has one. */
  readonly transform: Transforms['apply']
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
  /** The replay that they belong to; undefined for live events. */
  readonly replay?: string | undefined
  /** Replaces the form of the endpoint. */
  readonly build?: BodyFunction | undefined
}

/** `EventMessage` is one POST with events of a batch. */
export interface EventMessage extends Omit<MessageToSend, 'signal'> {
  /** The events as they were stored, before any transformation. */
  readonly events: readonly FlowEvent[]
}

/** `SkippedMessage` is not posted, because the transformation of the endpoint returned nothing for its events. */
export type SkippedMessage = Pick<EventMessage, 'events'> & { readonly isSkipped: true }

/** `MessageFailure` is a message that cannot be built, by the fault of the body function or of the transformation. */
export type MessageFailure = Pick<EventMessage, 'events'> & { readonly error: BodyError | TransformError }

/** `createNextMessage` takes all events, or the first one where the form of the endpoint holds a single one. */
export async function createNextMessage(
  { transform }: Pick<SendDependencies, 'transform'>,
  { endpoint, secrets }: EndpointTarget,
  { type, events: all, replay, build }: BatchToSend,
): Promise<EventMessage | SkippedMessage | MessageFailure> {
  const events = build === undefined && isSingleEventForm(endpoint.form) ? all.slice(0, 1) : all
  const ids = events.map((event) => event.id)
  const id = batchId(endpoint.id, type, ids, replay)
  try {
    const made = await transform({ endpoint, id, type, events })
    if (made.kind === 'skipped') return { events, isSkipped: true }
    const content =
      made.kind === 'body'
        ? made.content
        : createContent({ endpoint, secret: secrets[0] ?? '', id, type, events: made.events, build })
    return { id, replay, events, ...content, maxResponseBytes: responseBudget(ids) }
  } catch (error) {
    if (error instanceof BodyError || error instanceof TransformError) return { events, error }
    throw error
  }
}

export function postMessage(
  deps: SendDependencies,
  to: EndpointTarget,
  { events: _events, ...message }: EventMessage,
  signal?: AbortSignal,
): Promise<PostResult> {
  return postSigned(deps, to, { ...message, signal })
}

export interface MessageToSend extends Pick<PostRequest, 'body' | 'maxResponseBytes'> {
  /** The same for all attempts. */
  readonly id: string
  /** The replay that the message belongs to. */
  readonly replay?: string | undefined
  /** What the headers say about the body, e.g. its media type. Default: JSON. */
  readonly headers?: HeaderMap
  readonly signal: AbortSignal | undefined
}

/** `postSigned` posts any message, signed with the secrets of the endpoint. */
export async function postSigned(
  deps: SendDependencies,
  { endpoint, secrets, headers: extra }: EndpointTarget,
  { id, replay, signal, headers: content = JSON_BODY, ...what }: MessageToSend,
): Promise<PostResult> {
  const { clock, deadline, userAgent, guardRules: rules, origin } = deps
  const way = await deps.openTransport()
  return deps.atEndpointRate(endpoint, () => {
    const signed = createSignatureHeaders(endpoint.signing, { id, at: deps.now(), body: what.body, secrets })
    const named = replay === undefined ? {} : { [REPLAY_HEADER]: encodeURIComponent(replay) }
    const headers = {
      ...content,
      ...signed,
      ...named,
      ...(origin !== undefined && { 'webhook-request-origin': origin }),
    }
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
/** Its value is encoded as in a URL, because the id of a replay may have any character. */
const REPLAY_HEADER = 'webhook-replay'
const JSON_BODY = { 'content-type': 'application/json' } as const

/**
 * The same events of the same delivery to the same endpoint have the same id in every attempt and run. Another delivery
 * has another id, because its message may arrive while this one is in progress. So has a replay, because a subscriber that
 * remembers ids would drop its batches.
 */
function batchId(
  endpoint: Endpoint['id'],
  type: string,
  events: readonly string[],
  replay: string | undefined,
): string {
  const named = replay === undefined ? [endpoint, type, events] : [endpoint, type, events, replay]
  return `msg_${hash('sha256', JSON.stringify(named), 'base64url').slice(0, 32)}`
}
