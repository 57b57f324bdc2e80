// `createEvent` turns published input into an event: with an id, bytes, and an identity for deduplication (L10).
import type { Millis } from '../clock.ts'
import { messageOf, SluiceError } from '../errors.ts'
import {
  MAX_JSON_DEPTH,
  isTooDeep,
  ATTRIBUTES_BYTES_MAX,
  BODY_BYTES_MAX,
  ID_LENGTH_MAX,
  isEventId,
  isEventTime,
  newEventId,
  RECEIVED_ATTRIBUTE,
  ENCRYPTED_ATTRIBUTE,
  type Event,
  type EventInput,
} from './event.ts'
import { computeIdentity, type EventIdentity } from './identity.ts'

/** `RoutableEvent` is an event that has its id and bytes, but no placements yet. */
export interface RoutableEvent extends Omit<Event, 'arrived'> {
  readonly identity: EventIdentity
  readonly dedupeFor: Millis
  /** The request that brought the event, without its body, for audit. */
  readonly request: Uint8Array
}

const NO_BYTES = new Uint8Array()
/** The longest source, type and dedupe id: a store keeps them as text or hashes them. */
const TEXT_LENGTH_MAX = 1_024
/** As long as a key may be, because the subject is often the key. */
const SUBJECT_LENGTH_MAX = 16_384
/** Stores index the tenant, and no index has room for more. */
const TENANT_BYTES_MAX = 1_024

export interface NewEventContext {
  readonly now: Millis
  readonly dedupeFor: Millis
}

/** `createEvent` rejects everything that a store would reject, while the publisher can still learn of the error. */
export function createEvent(input: EventInput, { now, dedupeFor }: NewEventContext): RoutableEvent {
  if (typeof input !== 'object' || input === null) throw invalidEvent('event', 'an object with a type')
  const { type, source = 'app', tenant = '', subject = '', id = newEventId(now), dedupeId = id } = input
  assertText('type', type)
  assertText('source', source)
  assertText('tenant', tenant)
  assertText('subject', subject)
  assertText('id', id)
  assertText('dedupeId', dedupeId)
  if (!isEventId(id)) {
    throw invalidEvent('id', `text of 1 to ${ID_LENGTH_MAX} characters (a longer name can be its dedupeId)`)
  }
  assertName('type', type)
  assertName('source', source)
  assertName('dedupeId', dedupeId)
  if (subject.length > SUBJECT_LENGTH_MAX) throw invalidEvent('subject', 'text of at most 16,384 characters')
  if (tenant !== '' && Buffer.byteLength(tenant) > TENANT_BYTES_MAX)
    throw invalidEvent('tenant', 'text of at most 1,024 bytes')
  const event: Omit<Event, 'arrived'> = {
    id,
    source,
    type,
    time: toEventTime(input.time, now),
    tenant,
    subject,
    attributes: serializeAttributes(input.attributes),
    body: toBodyBytes(input),
  }
  if (event.body.length > BODY_BYTES_MAX) {
    throw invalidEvent('body or data', 'at most 100 MB (publish where the rest can be found)')
  }
  if (event.attributes !== '' && Buffer.byteLength(event.attributes) > ATTRIBUTES_BYTES_MAX) {
    throw invalidEvent('attributes', 'at most 16 MB as JSON')
  }
  return { ...event, identity: computeIdentity(source, tenant, dedupeId), dedupeFor, request: NO_BYTES }
}

function assertText(name: string, text: unknown): void {
  if (text === undefined) throw invalidEvent(name, 'set')
  if (typeof text !== 'string' || !text.isWellFormed()) throw invalidEvent(name, 'well-formed text')
}

function assertName(name: string, text: string): void {
  if (text === '' || text.length > TEXT_LENGTH_MAX) throw invalidEvent(name, 'text of 1 to 1,024 characters')
}

function toEventTime(time: EventInput['time'], now: Millis): Millis {
  const at = time === undefined ? now : time instanceof Date ? time.getTime() : time
  if (!isEventTime(at)) throw invalidEvent('time', 'a Date or whole milliseconds since 1970, as far as a Date goes')
  return at
}

function serializeAttributes(attributes: unknown): string {
  if (attributes === undefined) return ''
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes)) {
    throw invalidEvent('attributes', 'an object')
  }
  for (const name of [ENCRYPTED_ATTRIBUTE, RECEIVED_ATTRIBUTE]) {
    if (Object.hasOwn(attributes, name)) throw invalidEvent('attributes', `without ${name}, which only the engine sets`)
  }
  return toJsonText(attributes, 'attributes')
}

/** `toBodyBytes` returns the bytes that a store keeps. */
export function toBodyBytes({ data, body }: EventInput): Uint8Array {
  if (body !== undefined && data !== undefined) throw invalidEvent('body', 'left out when there is data')
  if (body instanceof Uint8Array) return body
  if (body !== undefined && typeof body !== 'string') throw invalidEvent('body', 'text or bytes')
  if (typeof body === 'string' || data === undefined) return Buffer.from(body ?? '')
  const bytes = Buffer.from(toJsonText(data, 'data'))
  // A handler could not read data nested deeper than this.
  if (isTooDeep(bytes)) throw invalidEvent('data', `nested no deeper than ${MAX_JSON_DEPTH}`)
  return bytes
}

function toJsonText(value: unknown, field: string): string {
  try {
    const text: unknown = JSON.stringify(value)
    if (typeof text === 'string') return text
  } catch (error) {
    throw invalidEvent(field, `something JSON can hold (${messageOf(error)})`)
  }
  throw invalidEvent(field, 'something JSON can hold')
}

function invalidEvent(field: string, fix: string): SluiceError {
  return new SluiceError('EVENT_INVALID', `${field} must be ${fix}; nothing was stored.`)
}
