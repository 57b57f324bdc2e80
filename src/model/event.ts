// `Event` is one thing that happened. It is stored once and never changed. Only code that reads the body interprets its bytes.
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'

/** `Event` is an event as a store keeps it. Its attributes have the CloudEvents names. */
export interface Event {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: Millis
  /** '' for none. */
  readonly tenant: string
  readonly subject: string
  /** Further CloudEvents attributes as a JSON object, '' for none. */
  readonly attributes: string
  readonly body: Uint8Array
  /** The time at which the store stored the event. */
  readonly arrived: Millis
}

/** `EventInput` is an event as a user publishes it. Only `type` is required. */
export interface EventInput {
  readonly type: string
  /** The data, which is stored as JSON. */
  readonly data?: unknown
  /** The bytes, instead of `data`. */
  readonly body?: Uint8Array | string
  /** Default: `'app'`. */
  readonly source?: string | undefined
  readonly tenant?: string | undefined
  readonly subject?: string | undefined
  readonly time?: Date | Millis | undefined
  /** Further CloudEvents attributes. */
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
  readonly id?: string | undefined
  /** A second event with the same source, tenant and dedupe id is a duplicate. Default: the event's id. */
  readonly dedupeId?: string | undefined
}

/** `PublishTarget` says when an event is published, and to whom. */
export interface PublishTarget {
  /** The earliest time of publication. */
  readonly at?: Date | Millis
  /** Only these flows, or this one endpoint, whether or not they match the event. */
  readonly to?: string | readonly string[]
}

/** `PublishResult` is the result for one event. Its ids are those of the events, even while a delayed event waits. */
export interface PublishResult {
  readonly id: string
  /** `in-transaction`: the event is stored if and only if the transaction commits. */
  readonly kind: 'stored' | 'repeated' | 'duplicate' | 'conflict' | 'refused' | 'in-transaction'
  /** The stored event with the same identity. */
  readonly of: string | undefined
}

/** `ENGINE_SOURCE` is the source of the events about the engine that any flow may take: alerts, endpoints and dead letters. */
export const ENGINE_SOURCE = 'sluice'

/** `OWN_SOURCES` is the prefix of the source of each event that the engine publishes to itself. No other flow gets these. */
export const OWN_SOURCES = 'sluice.'

/** `BODY_BYTES_MAX` bounds a body, because stores hold a few in memory at a time. Larger data belongs elsewhere. */
export const BODY_BYTES_MAX: number = 100 * 1024 * 1024
export const ATTRIBUTES_BYTES_MAX: number = 16 * 1024 * 1024

/** `ID_LENGTH_MAX` is bounded because stores index ids unchanged. */
export const ID_LENGTH_MAX = 128

/** `isEventId` counts characters as PostgreSQL does: one outside the Basic Multilingual Plane counts once. */
export function isEventId(id: string): boolean {
  return (
    id !== '' &&
    (id.length <= ID_LENGTH_MAX || (id.length <= 2 * ID_LENGTH_MAX && Array.from(id).length <= ID_LENGTH_MAX))
  )
}

/** The largest distance from 1970 that a Date can hold. A delivery could not format a later time. */
const TIME_MAX: Millis = 8.64e15

export function isEventTime(at: Millis): boolean {
  return Number.isInteger(at) && Math.abs(at) <= TIME_MAX
}

/** `ENCRYPTED_ATTRIBUTE` marks an event whose bytes are encrypted in the store. Only the engine may set it. */
export const ENCRYPTED_ATTRIBUTE = 'sluicesealed'

/** `TARGET_ENDPOINT_ATTRIBUTE` names the one endpoint that an event is for. No CloudEvents extension can have this name. */
export const TARGET_ENDPOINT_ATTRIBUTE = 'sluice-to'

/** `RECEIVED_ATTRIBUTE` marks an event that a source received. An event that the app published does not have it. */
export const RECEIVED_ATTRIBUTE = 'sluice-received'
const RECEIVED_PREFIX = `{"${RECEIVED_ATTRIBUTE}":true`
const OWN_ATTRIBUTES = [ENCRYPTED_ATTRIBUTE, TARGET_ENDPOINT_ATTRIBUTE, RECEIVED_ATTRIBUTE] as const

/** `markReceived` adds the attribute in front of the others, so that `isReceived` need not parse them. */
export function markReceived(attributes: string): string {
  if (attributes === '' || attributes === '{}') return `${RECEIVED_PREFIX}}`
  return `${RECEIVED_PREFIX},${attributes.slice(1)}`
}

export function isReceived(attributes: string): boolean {
  return attributes.startsWith(RECEIVED_PREFIX)
}

/** `isEncrypted` returns whether the body and the request of an event are encrypted in the store. */
export function isEncrypted(attributes: string): boolean {
  return (
    attributes.includes(ENCRYPTED_ATTRIBUTE) &&
    (JSON.parse(attributes) as Record<string, unknown>)[ENCRYPTED_ATTRIBUTE] === true
  )
}

/** `parseAttributes` returns the attributes that the sender named, without those that the engine added. */
export function parseAttributes(attributes: string): Readonly<Record<string, unknown>> {
  if (attributes === '') return {}
  const all = JSON.parse(attributes) as Record<string, unknown>
  for (const name of OWN_ATTRIBUTES) delete all[name]
  return all
}

const ALPHABET = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz')
const TIME_LENGTH = 10
const RANDOM_LENGTH = 16

// One read of the system's randomness, and one formatted time, serve many ids.
const entropy = { bytes: Buffer.alloc(0), used: 0 }
const latestTime = { now: -1, text: '' }

/** `newEventId` returns 10 characters of time and 16 random ones. Ids sort by time, so indexes grow at their end. */
export function newEventId(now: Millis): string {
  if (now !== latestTime.now) Object.assign(latestTime, { now, text: encodeTime(now) })
  if (entropy.used + RANDOM_LENGTH > entropy.bytes.length) {
    entropy.bytes = randomBytes(RANDOM_LENGTH * 256).map((byte) => ALPHABET[byte % 32] ?? 0) as typeof entropy.bytes
    entropy.used = 0
  }
  entropy.used += RANDOM_LENGTH
  return latestTime.text + entropy.bytes.toString('latin1', entropy.used - RANDOM_LENGTH, entropy.used)
}

/** `encodeTime` returns the first 10 characters of an event's id. */
export function encodeTime(now: Millis): string {
  const digits = Buffer.alloc(TIME_LENGTH)
  for (let rest = now, digit = TIME_LENGTH - 1; digit >= 0; digit--, rest = Math.floor(rest / 32)) {
    digits[digit] = ALPHABET[rest % 32] ?? 0
  }
  return digits.toString('latin1')
}

/** `decodeEventTime` returns the time in an id that `newEventId` made; undefined for an id of a publisher. */
export function decodeEventTime(id: string): Millis | undefined {
  if (id.length !== TIME_LENGTH + RANDOM_LENGTH) return undefined
  const digits = Array.from(id, (deadLetter) => ALPHABET.indexOf(deadLetter.charCodeAt(0)))
  if (digits.includes(-1)) return undefined
  return digits.slice(0, TIME_LENGTH).reduce((time, digit) => time * 32 + digit, 0)
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export function decodeText(body: Uint8Array): string {
  return decoder.decode(body)
}

/** `parseData` returns the body as JSON, or undefined if it is not JSON or is nested deeper than 64. The bytes remain available. */
export function parseData(body: Uint8Array): unknown {
  return parseJson(body)?.value
}

/** `parseJson` returns the JSON value and its original text. */
export function parseJson(body: Uint8Array): { readonly text: string; readonly value: unknown } | undefined {
  if (isTooDeep(body)) return undefined
  const text = decodeText(body)
  try {
    return { text, value: PROTO_KEY_PATTERN.test(text) ? JSON.parse(text, dropProtoKey) : JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** Matches the name in every spelling that JSON allows. */
const PROTO_KEY_PATTERN = /__proto__|\\u00(?:5f|6f|70|72|74)/i

/** A member with this name serves only to change the prototype of all objects through a careless copy. */
function dropProtoKey(name: string, value: unknown): unknown {
  return name === '__proto__' ? undefined : value
}

/** Code that walks JSON recurses, `JSON.stringify` included, so its nesting must be bounded (R4). */
export const MAX_JSON_DEPTH = 64

/** Measures the nesting of JSON from its bytes. Brackets within strings do not count. */
function measureDepth(body: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let inText = false
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (inText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return deepest
}

export function isTooDeep(body: Uint8Array): boolean {
  return body.length > MAX_JSON_DEPTH && measureDepth(body) > MAX_JSON_DEPTH
}
