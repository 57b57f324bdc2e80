// Bodies and headers of CloudEvents 1.0 over HTTP, in its three modes.
import { parseJson } from '../../model/event.ts'
import type { FlowEvent } from '../../model/flow-event.ts'
import type { HeaderMap } from '../http/headers.ts'
import { appendData, formatTime } from './events.ts'
import type { CloudEventsMode } from './form.ts'

export interface MessageContent {
  readonly body: Buffer
  /** In lower case. */
  readonly headers: HeaderMap
}

type Attributes = Readonly<Record<string, string | number | boolean>>

const JSON_TYPE = 'application/json'
const BYTES_TYPE = 'application/octet-stream'
const IS_JSON_TYPE = /^[^;]*[/+]json\s*(?:;|$)/i
const EXTENSION = /^[a-z0-9]{1,20}$/
const CORE: ReadonlySet<string> = new Set(
  'specversion id source type time subject dataschema datacontenttype data'.split(' '),
)
/** Extensions travel in headers in the binary mode, and a server reads a few kilobytes of headers. */
const EXTENSIONS_BYTES_MAX = 4_096
const INT32 = 2 ** 31

/** `cloudEventsContent` takes one event, or any number in the mode `batch`. */
export function cloudEventsContent(mode: CloudEventsMode, events: readonly FlowEvent[]): MessageContent {
  if (mode === 'batch') {
    return withType('application/cloudevents-batch+json', Buffer.from(`[${events.map(toStructured).join(',')}]`))
  }
  const [event] = events
  if (event === undefined || events.length > 1) throw new Error(`The mode ${mode} takes one event.`)
  if (mode === 'structured') return withType('application/cloudevents+json', Buffer.from(toStructured(event)))
  const attributes = toAttributes(event)
  const headers = Object.entries(attributes).map(
    ([name, value]) => [`ce-${name}`, encodeHeader(String(value))] as const,
  )
  const { headers: type, body } = withType(dataType(event) ?? BYTES_TYPE, Buffer.from(event.body))
  return { headers: { ...type, ...Object.fromEntries(headers) }, body }
}

function withType(type: string, body: Buffer): MessageContent {
  return { headers: { 'content-type': type }, body }
}

function toStructured(event: FlowEvent): string {
  const type = dataType(event)
  const attributes = { ...toAttributes(event), ...(type !== undefined && { datacontenttype: type }) }
  return appendData(attributes, event.body, type === undefined || IS_JSON_TYPE.test(type))
}

function toAttributes({ id, source, type, time, subject, attributes }: FlowEvent): Attributes {
  const { dataschema } = attributes
  return {
    ...toExtensions(attributes),
    specversion: '1.0',
    id,
    source,
    type,
    time: formatTime(time),
    ...(subject !== undefined && { subject }),
    ...(typeof dataschema === 'string' && dataschema !== '' && { dataschema }),
  }
}

/** Only attributes that CloudEvents allows as extensions are sent. */
function toExtensions(attributes: Readonly<Record<string, unknown>>): Attributes {
  let bytes = 0
  const kept: Record<string, string | number | boolean> = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (!EXTENSION.test(name) || CORE.has(name) || !isAttributeValue(value)) continue
    bytes += name.length + encodeHeader(String(value)).length
    if (bytes > EXTENSIONS_BYTES_MAX) break
    kept[name] = value
  }
  return kept
}

function isAttributeValue(value: unknown): value is string | number | boolean {
  if (typeof value === 'number') return Number.isInteger(value) && value >= -INT32 && value < INT32
  return typeof value === 'boolean' || (typeof value === 'string' && value !== '')
}

/** `dataType` returns the media type of the data; undefined if it is unknown. */
function dataType({ body, attributes }: FlowEvent): string | undefined {
  if (body.length === 0) return undefined
  const { datacontenttype: given } = attributes
  const isJson = parseJson(body) !== undefined
  if (typeof given === 'string' && MEDIA_TYPE.test(given) && (isJson || !IS_JSON_TYPE.test(given))) return given
  return isJson ? JSON_TYPE : BYTES_TYPE
}

const MEDIA_TYPE = /^[\x21-\x7e]+\/[\x20-\x7e]+$/

/** The specification encodes the space, the double quote, the percent sign and everything that is not printable ASCII. */
function encodeHeader(value: string): string {
  return value.toWellFormed().replaceAll(/[^\x21\x23\x24\x26-\x7e]/gu, (character) => {
    return Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  })
}
