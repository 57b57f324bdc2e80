// One CloudEvent read from its headers or from its JSON: the attributes by the rules of the standard, and the data as bytes.
import { hash } from 'node:crypto'
import type { ReceivedRequest, Refusal, SourceEvent } from '../receive/source.ts'
import { instantOfText } from './instant.ts'
import { isWrittenObject, membersOf, textIn, type Written } from './json-text.ts'
import { refusal } from './signature.ts'

type Attribute = string | number | boolean
type Attributes = ReadonlyMap<string, Attribute>

const PREFIX = 'ce-'
const NAME = /^[a-z0-9]+$/
const FORBIDDEN = /\p{Cc}/u
const NAME_MAX = 1_024
/** Those that an event has itself, or that say nothing once it is read. */
const OWN: ReadonlySet<string> = new Set(['specversion', 'type', 'subject', 'time', 'id', 'source'])
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function binaryEvent({ headers, body }: ReceivedRequest, tenant: string | undefined): SourceEvent | Refusal {
  const attributes = new Map<string, Attribute>()
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(PREFIX)) continue
    const name = header.slice(PREFIX.length)
    // The content type has a header of its own: two could contradict each other.
    if (name === 'datacontenttype' || name === 'data') return notUnderstood(`${header} is not a header of an event.`)
    const text = headerText(value)
    if (text === undefined) return notUnderstood(`${header} is not UTF-8 once it is decoded.`)
    attributes.set(name, text)
  }
  const contentType = headers['content-type']
  if (contentType !== undefined && contentType !== '') attributes.set('datacontenttype', contentType)
  return eventOf(attributes, body, tenant)
}

export function structuredEvent(json: Written, tenant: string | undefined): SourceEvent | Refusal {
  if (!isWrittenObject(json)) return notUnderstood('An event is a JSON object.')
  const members = membersOf(json)
  const attributes = new Map<string, Attribute>()
  for (const [name, value] of members) {
    if (name === 'data' || name === 'data_base64' || isNull(value)) continue
    const attribute = attributeOf(value)
    if (attribute === undefined) return notUnderstood(`${JSON.stringify(name)} is no text, number or truth value.`)
    attributes.set(name, attribute)
  }
  const data = dataOf(members, attributes.get('datacontenttype'))
  return 'code' in data ? data : eventOf(attributes, data, tenant)
}

function eventOf(attributes: Attributes, body: Uint8Array, tenantName: string | undefined): SourceEvent | Refusal {
  const fault = attributesFault(attributes)
  if (fault !== undefined) return notUnderstood(fault)
  const text = (name: string): string => String(attributes.get(name) ?? '')
  const others = [...attributes].filter(([name]) => !OWN.has(name))
  const time = instantOfText(text('time'))
  const subject = text('subject')
  const tenant = tenantName === undefined ? '' : text(tenantName)
  const identity = `${text('source')} ${text('id')}`
  return {
    type: text('type'),
    dedupeId: identity.length > NAME_MAX ? hash('sha256', identity) : identity,
    body,
    attributes: { ...Object.fromEntries(others), cesource: text('source'), ceid: text('id') },
    ...(subject !== '' && { subject }),
    ...(tenant !== '' && { tenant }),
    ...(time !== undefined && { time }),
  }
}

/** What is wrong with them, in words. */
function attributesFault(attributes: Attributes): string | undefined {
  if (attributes.get('specversion') !== '1.0') return 'There is no CloudEvent with specversion 1.0 in it.'
  for (const name of ['id', 'source', 'type']) {
    const value = attributes.get(name)
    if (typeof value !== 'string' || value === '') return `${name} is missing or no text.`
  }
  for (const [name, value] of attributes) {
    if (!NAME.test(name))
      return `${JSON.stringify(name)} is no name of an attribute: those have small letters and digits.`
    if (typeof value === 'string' && (FORBIDDEN.test(value) || !value.isWellFormed())) {
      return `${name} has characters that no attribute may have.`
    }
  }
  if (/\s/.test(String(attributes.get('source')))) return 'source is no URI reference.'
  if (String(attributes.get('type')).length > NAME_MAX) return `type is longer than ${NAME_MAX} characters.`
  const time = attributes.get('time')
  const isTime = time === undefined || (typeof time === 'string' && instantOfText(time) !== undefined)
  return isTime ? undefined : 'time is not as RFC 3339 has it.'
}

/** Double quotes are undone first, then one round of percent signs. A percent sign that begins nothing stays: some never encode. */
function headerText(value: string): string | undefined {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value.trim())?.[1]
  const plain = quoted === undefined ? value : quoted.replaceAll(/\\(.)/g, '$1')
  try {
    return plain.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => decoder.decode(Buffer.from(run.replaceAll('%', ''), 'hex')))
  } catch {
    return undefined
  }
}

function attributeOf(value: Written): Attribute | undefined {
  const text = textIn(value)
  if (text !== undefined) return text
  const written = Buffer.from(value).toString()
  if (written === 'true' || written === 'false') return written === 'true'
  if (!/^-?\d/.test(written)) return undefined
  // Digits that a number does not hold stay as they were written.
  return Number.isSafeInteger(Number(written)) ? Number(written) : written
}

/** Text of another kind than JSON is the text itself; everything else under `data` is JSON, null as well. */
function dataOf(members: ReadonlyMap<string, Written>, contentType: Attribute | undefined): Uint8Array | Refusal {
  const data = members.get('data')
  const base64 = members.get('data_base64')
  if (base64 !== undefined && !isNull(base64)) {
    if (data !== undefined) return notUnderstood('There is data and data_base64.')
    const text = textIn(base64)
    const isGood = text !== undefined && text.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(text)
    return isGood ? Buffer.from(text, 'base64') : notUnderstood('data_base64 is no Base64.')
  }
  if (data === undefined) return new Uint8Array()
  const isJson = contentType === undefined || /^[^;]*[/+]json\s*(?:;|$)/i.test(String(contentType))
  const text = isJson ? undefined : textIn(data)
  return text === undefined ? data : Buffer.from(text)
}

function isNull(value: Written): boolean {
  return value[0] === 0x6e
}

function notUnderstood(what: string): Refusal {
  const fix = 'Look at what was sent: ce- headers with the data as body, or application/cloudevents+json.'
  return refusal('BODY_NOT_UNDERSTOOD', what, fix)
}
