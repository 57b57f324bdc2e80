// `nameEvents` gives the events of a request their ids, and stores the request with the first of them for audit.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { markReceived } from '../model/event.ts'
import { withTrace } from '../observe/trace/context.ts'
import type { DeclaredSource } from './source-options.ts'
import { createEvent, type RoutableEvent } from '../model/new-event.ts'
import { queryWithoutSecrets, withoutSecrets } from './refused-requests.ts'
import type { ReceivedRequest, SourceEvent } from './source.ts'

/** `RequestArrival` says when, and under which id, a request arrived. */
export interface RequestArrival {
  readonly id: string
  readonly at: Millis
}

/** The bound on names that strangers choose and that indexes hold. */
const NAME_MAX = 1_024

export function nameEvents(
  source: DeclaredSource,
  request: ReceivedRequest,
  { id, at }: RequestArrival,
  events: readonly SourceEvent[],
): readonly RoutableEvent[] {
  const whole = serializeRequest(source, request, { id, at }, events)
  // Otherwise a request with thousands of events would be stored thousands of times.
  const part = events.length > 1 ? Buffer.from(JSON.stringify({ id, at, of: id })) : whole
  return events.map((event, n) => {
    // The id contains the request id, so that the receipt of a duplicate identifies the request.
    const own = n === 0 ? id : `${id}-${n}`
    assertNameLengths(event)
    const input = { ...withTrace(event), id: own, source: source.name, dedupeId: event.dedupeId ?? own }
    const named = createEvent(input, { now: at, dedupeFor: source.dedupeFor })
    return { ...named, attributes: markReceived(named.attributes), request: n === 0 ? whole : part }
  })
}

function assertNameLengths({ subject = '', tenant = '' }: SourceEvent): void {
  if (subject.length <= NAME_MAX && tenant.length <= NAME_MAX) return
  throw new SluiceError('EVENT_INVALID', 'subject and tenant must have at most 1,024 characters; nothing was stored.')
}

/** `configuredSecrets` leaves out secrets that came by handshake: they only sign, and are never sent again. */
export function configuredSecrets({ source }: DeclaredSource): readonly string[] {
  return source.secrets === 'by-handshake' ? [] : source.secrets
}

/** `serializeRequest` stores the signed bytes once, if the events no longer contain them unchanged. */
function serializeRequest(
  source: DeclaredSource,
  { method, url, headers, address, body }: ReceivedRequest,
  { id, at }: RequestArrival,
  events: readonly SourceEvent[],
): Uint8Array {
  const secrets = configuredSecrets(source)
  const path = `${url.pathname}${queryWithoutSecrets(url, secrets)}`
  const isWhole = events.every((event) => equalBytes(event.body, body))
  const more = isWhole ? {} : { body64: toBuffer(body).toString('base64') }
  const record = { id, at, ...more, method, url: path, address, headers: withoutSecrets(headers, secrets) }
  return Buffer.from(JSON.stringify(record))
}

function equalBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one === other || (one.length === other.length && toBuffer(one).equals(other))
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
