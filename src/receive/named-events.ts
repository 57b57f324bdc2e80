// The events of a request as a store takes them: named after it, and what is kept of it with the first of them, for audit.
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { withTrace } from '../observe/trace-context.ts'
import type { DeclaredSource } from './declared-source.ts'
import { newEvent, type UnroutedEvent } from './new-event.ts'
import { queryWithoutSecrets, withoutSecrets } from './refused-requests.ts'
import type { ReceivedRequest, SourceEvent } from './source.ts'

/** When, and under which id, a request arrived. */
export interface Arrived {
  readonly id: string
  readonly at: Millis
}

/** Of names that strangers choose, and that indexes hold. */
const NAME_MAX = 1_024

export function namedEvents(
  source: DeclaredSource,
  request: ReceivedRequest,
  { id, at }: Arrived,
  events: readonly SourceEvent[],
): readonly UnroutedEvent[] {
  const whole = requestBytes(source, request, { id, at }, events)
  // A request of thousands of events would be kept thousands of times.
  const part = events.length > 1 ? Buffer.from(JSON.stringify({ id, at, of: id })) : whole
  return events.map((event, n) => {
    // Named after the request, so that the receipt of a duplicate names it.
    const own = n === 0 ? id : `${id}-${n}`
    mustBeShort(event)
    const input = { ...withTrace(event), id: own, source: source.name, dedupeId: event.dedupeId ?? own }
    const named = newEvent(input, { now: at, dedupeFor: source.dedupeFor })
    return { ...named, request: n === 0 ? whole : part }
  })
}

function mustBeShort({ subject = '', tenant = '' }: SourceEvent): void {
  if (subject.length <= NAME_MAX && tenant.length <= NAME_MAX) return
  throw new SluiceError('EVENT_INVALID', 'subject and tenant are at most 1,024 characters; nothing was stored.')
}

/** One that came by handshake signs, and is never sent again. */
export function ownSecrets({ source }: DeclaredSource): readonly string[] {
  return source.secrets === 'by-handshake' ? [] : source.secrets
}

/** What was signed is kept as it came, once, where the events are no longer that. */
function requestBytes(
  source: DeclaredSource,
  { method, url, headers, address, body }: ReceivedRequest,
  { id, at }: Arrived,
  events: readonly SourceEvent[],
): Uint8Array {
  const secrets = ownSecrets(source)
  const asked = `${url.pathname}${queryWithoutSecrets(url, secrets)}`
  const isWhole = events.every((event) => isSame(event.body, body))
  const more = isWhole ? {} : { body64: bufferOf(body).toString('base64') }
  const kept = { id, at, ...more, method, url: asked, address, headers: withoutSecrets(headers, secrets) }
  return Buffer.from(JSON.stringify(kept))
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one === other || (one.length === other.length && bufferOf(one).equals(other))
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
