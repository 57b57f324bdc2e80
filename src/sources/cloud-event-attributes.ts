// This file reads one CloudEvent from its headers or its JSON: the attributes by the rules of the standard, and the
// data as bytes.
import { hash } from 'node:crypto'
import type { ReceivedRequest, Refusal, SourceEvent } from '../receive/source.ts'
import { parseTimestamp } from './event-names.ts'
import { isObjectSlice, readMembers, readText, type JsonSlice } from './json-slices.ts'
import { notUnderstood } from './signature.ts'

type Attribute = string | number | boolean
type Attributes = ReadonlyMap<string, Attribute>

const PREFIX = 'ce-'
const NAME = /^[a-z0-9]+$/
const FORBIDDEN = /\p{Cc}/u
const NAME_MAX = 1_024
/** Attributes that an event stores elsewhere, or that mean nothing once it is read. */
const KNOWN_ATTRIBUTES: ReadonlySet<string> = new Set(['specversion', 'type', 'subject', 'time', 'id', 'source'])
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function parseBinaryEvent(
  { headers, body }: ReceivedRequest,
  tenant: string | undefined,
): SourceEvent | Refusal {
  const attributes = new Map<string, Attribute>()
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(PREFIX)) continue
    const name = header.slice(PREFIX.length)
    // The content type has its own header: two values could contradict each other.
    if (name === 'datacontenttype' || name === 'data')
      return invalidEvent(`${header} must not be a header of an event.`)
    const text = decodeHeader(value)
    if (text === undefined) return invalidEvent(`${header} is not UTF-8 once it is decoded.`)
    attributes.set(name, text)
  }
  const contentType = headers['content-type']
  if (contentType !== undefined && contentType !== '') attributes.set('datacontenttype', contentType)
  return toSourceEvent(attributes, body, tenant)
}

export function parseStructuredEvent(json: JsonSlice, tenant: string | undefined): SourceEvent | Refusal {
  if (!isObjectSlice(json)) return invalidEvent('An event must be a JSON object.')
  const members = readMembers(json)
  const attributes = new Map<string, Attribute>()
  for (const [name, value] of members) {
    if (name === 'data' || name === 'data_base64' || isNull(value)) continue
    const attribute = parseAttribute(value)
    if (attribute === undefined) return invalidEvent(`${JSON.stringify(name)} must be a text, a number or a boolean.`)
    attributes.set(name, attribute)
  }
  const data = parseData(members, attributes.get('datacontenttype'))
  return 'code' in data ? data : toSourceEvent(attributes, data, tenant)
}

function toSourceEvent(
  attributes: Attributes,
  body: Uint8Array,
  tenantName: string | undefined,
): SourceEvent | Refusal {
  const fault = attributesFault(attributes)
  if (fault !== undefined) return invalidEvent(fault)
  const text = (name: string): string => String(attributes.get(name) ?? '')
  const others = [...attributes].filter(([name]) => !KNOWN_ATTRIBUTES.has(name))
  const identity = `${text('source')} ${text('id')}`
  return {
    type: text('type'),
    dedupeId: identity.length > NAME_MAX ? hash('sha256', identity) : identity,
    body,
    attributes: { ...Object.fromEntries(others), cesource: text('source'), ceid: text('id') },
    subject: text('subject') || undefined,
    tenant: tenantName === undefined ? undefined : text(tenantName) || undefined,
    time: parseTimestamp(text('time')),
  }
}

/** `attributesFault` describes the first fault of the attributes. */
function attributesFault(attributes: Attributes): string | undefined {
  if (attributes.get('specversion') !== '1.0') return 'specversion of a CloudEvent must be 1.0.'
  for (const name of ['id', 'source', 'type']) {
    const value = attributes.get(name)
    if (typeof value !== 'string' || value === '') return `${name} must be a text that is not empty.`
  }
  for (const [name, value] of attributes) {
    if (!NAME.test(name)) return `${JSON.stringify(name)} must be an attribute name of lower-case letters and digits.`
    if (typeof value === 'string' && (FORBIDDEN.test(value) || !value.isWellFormed())) {
      return `${name} has characters that an attribute must not have.`
    }
  }
  if (/\s/.test(String(attributes.get('source')))) return 'source must be a URI reference.'
  if (String(attributes.get('type')).length > NAME_MAX) return `type is longer than ${NAME_MAX} characters.`
  const time = attributes.get('time')
  const isTime = time === undefined || (typeof time === 'string' && parseTimestamp(time) !== undefined)
  return isTime ? undefined : 'time must be in RFC 3339 format.'
}

/** `decodeHeader` removes double quotes, then decodes percent escapes once. A percent sign that starts no escape
    stays: some senders never encode. */
function decodeHeader(value: string): string | undefined {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value.trim())?.[1]
  const plain = quoted === undefined ? value : quoted.replaceAll(/\\(.)/g, '$1')
  try {
    return plain.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => decoder.decode(Buffer.from(run.replaceAll('%', ''), 'hex')))
  } catch {
    return undefined
  }
}

function parseAttribute(value: JsonSlice): Attribute | undefined {
  const text = readText(value)
  if (text !== undefined) return text
  const written = Buffer.from(value).toString()
  if (written === 'true' || written === 'false') return written === 'true'
  if (!/^-?\d/.test(written)) return undefined
  // A number with more digits than a double can hold stays as it was written.
  return Number.isSafeInteger(Number(written)) ? Number(written) : written
}

/** With a content type other than JSON, text in `data` is the body itself. Everything else in `data` is JSON,
    including null. */
function parseData(members: ReadonlyMap<string, JsonSlice>, contentType: Attribute | undefined): Uint8Array | Refusal {
  const data = members.get('data')
  const base64 = members.get('data_base64')
  if (base64 !== undefined && !isNull(base64)) {
    if (data !== undefined) return invalidEvent('An event must not have both data and data_base64.')
    const text = readText(base64)
    const isGood = text !== undefined && text.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(text)
    return isGood ? Buffer.from(text, 'base64') : invalidEvent('data_base64 must be Base64.')
  }
  if (data === undefined) return new Uint8Array()
  const isJson = contentType === undefined || /^[^;]*[/+]json\s*(?:;|$)/i.test(String(contentType))
  const text = isJson ? undefined : readText(data)
  return text === undefined ? data : Buffer.from(text)
}

function isNull(value: JsonSlice): boolean {
  return value[0] === 0x6e
}

function invalidEvent(message: string): Refusal {
  return notUnderstood(message, 'Send ce- headers with the data as body, or application/cloudevents+json.')
}
