// What somebody publishes becomes an event: named, with its bytes, and with an identity by which it is known again (L10).
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { DEPTH_MAX, isTooDeep } from '../model/depth.ts'
import type { EventInput } from '../model/event-input.ts'
import {
  ATTRIBUTES_BYTES_MAX,
  BODY_BYTES_MAX,
  ID_LENGTH_MAX,
  isId,
  isTime,
  newEventId,
  SEALED,
  type Event,
} from '../model/event.ts'
import { identity } from '../model/identity.ts'
import type { NewEvent } from '../store/contract/index.ts'

export type UnroutedEvent = Omit<NewEvent, 'places' | 'marks'>

const NO_BYTES = new Uint8Array()
/** Of names that a store keeps as text, or hashes. */
const TEXT_LENGTH_MAX = 1_024
/** As long as a key may be, which it often is. */
const SUBJECT_LENGTH_MAX = 16_384
/** Stores find events and lanes by it: no index has room for more. */
const TENANT_BYTES_MAX = 1_024

export interface Naming {
  readonly now: Millis
  readonly dedupeFor: Millis
}

/** Refuses whatever a store would: who publishes later, or in a settlement, could not be told of it any more. */
export function newEvent(input: EventInput, { now, dedupeFor }: Naming): UnroutedEvent {
  if (typeof input !== 'object' || input === null) throw invalid('event', 'an object with a type')
  const { type, source = 'app', tenant = '', subject = '', id = newEventId(now), dedupeId = id } = input
  mustBeText('type', type)
  mustBeText('source', source)
  mustBeText('tenant', tenant)
  mustBeText('subject', subject)
  mustBeText('id', id)
  mustBeText('dedupeId', dedupeId)
  if (!isId(id)) {
    throw invalid('id', `text of 1 to ${ID_LENGTH_MAX} characters (a longer name can be its dedupeId)`)
  }
  mustBeAName('type', type)
  mustBeAName('source', source)
  mustBeAName('dedupeId', dedupeId)
  if (subject.length > SUBJECT_LENGTH_MAX) throw invalid('subject', 'text of at most 16,384 characters')
  if (tenant !== '' && Buffer.byteLength(tenant) > TENANT_BYTES_MAX)
    throw invalid('tenant', 'text of at most 1,024 bytes')
  const event: Omit<Event, 'arrived'> = {
    id,
    source,
    type,
    time: timeOf(input.time, now),
    tenant,
    subject,
    attributes: attributesOf(input.attributes),
    body: bodyOf(input),
  }
  if (event.body.length > BODY_BYTES_MAX) {
    throw invalid('body or data', 'at most 100 MB (publish where the rest can be found)')
  }
  if (event.attributes !== '' && Buffer.byteLength(event.attributes) > ATTRIBUTES_BYTES_MAX) {
    throw invalid('attributes', 'at most 16 MB as JSON')
  }
  return { ...event, identity: identity(source, tenant, dedupeId), dedupeFor, request: NO_BYTES }
}

function mustBeText(name: string, text: unknown): void {
  if (typeof text !== 'string' || !text.isWellFormed()) throw invalid(name, 'well-formed text')
}

function mustBeAName(name: string, text: string): void {
  if (text === '' || text.length > TEXT_LENGTH_MAX) throw invalid(name, 'text of 1 to 1,024 characters')
}

function timeOf(time: EventInput['time'], now: Millis): Millis {
  const at = time === undefined ? now : time instanceof Date ? time.getTime() : time
  if (!isTime(at)) throw invalid('time', 'a Date or whole milliseconds since 1970, as far as a Date goes')
  return at
}

function attributesOf(attributes: unknown): string {
  if (attributes === undefined) return ''
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes)) {
    throw invalid('attributes', 'an object')
  }
  if (Object.hasOwn(attributes, SEALED)) throw invalid('attributes', `without ${SEALED}, which is ours`)
  return jsonOf(attributes, 'attributes')
}

function bodyOf({ data, body }: EventInput): Uint8Array {
  if (body !== undefined && data !== undefined) throw invalid('body', 'left out when there is data')
  if (body instanceof Uint8Array) return body
  if (body !== undefined && typeof body !== 'string') throw invalid('body', 'text or bytes')
  if (typeof body === 'string' || data === undefined) return Buffer.from(body ?? '')
  const bytes = Buffer.from(jsonOf(data, 'data'))
  // No handler would find it in the event again.
  if (isTooDeep(bytes)) throw invalid('data', `nested no deeper than ${DEPTH_MAX}`)
  return bytes
}

function jsonOf(value: unknown, field: string): string {
  try {
    const text: unknown = JSON.stringify(value)
    if (typeof text === 'string') return text
  } catch (error) {
    throw invalid(field, `something JSON can hold (${error instanceof Error ? error.message : String(error)})`)
  }
  throw invalid(field, 'something JSON can hold')
}

function invalid(field: string, fix: string): SluiceError {
  return new SluiceError('EVENT_INVALID', `${field} must be ${fix}; nothing was stored.`)
}
