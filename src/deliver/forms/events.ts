// The bodies of the forms `standard`, `events` and `flat`. Events keep their order, which is that of their positions (D2).
import type { Millis } from '../../clock.ts'
import { parseJson } from '../../model/event.ts'
import type { FlowEvent } from '../../model/flow-event.ts'
import { parsePath, readPath } from '../../flow/paths.ts'
import type { MessageContent } from './cloud-events.ts'

/** `standardBody` has the envelope that Standard Webhooks recommends. */
export function standardBody(type: string, events: readonly FlowEvent[]): Buffer {
  const latest = events.reduce((time, event) => Math.max(time, event.time), 0)
  const head = `"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(formatTime(latest))}`
  return Buffer.from(`{${head},"data":{"events":[${events.map(toStandardEvent).join(',')}]}}`)
}

/** `eventsBody` is `{ events: […] }` without an envelope. `fields` names further members of each event and their paths. */
export function eventsBody(events: readonly FlowEvent[], fields: Readonly<Record<string, string>> = {}): Buffer {
  const paths = Object.entries(fields).map(([name, path]) => [name, parsePath(path)] as const)
  const texts = events.map((event) => {
    const { id, type, time, body } = event
    const chosen = paths.map(([name, path]) => [name, path === undefined ? undefined : readPath(event, path)] as const)
    const attributes = { id, eventType: type, ...Object.fromEntries(chosen), createdAt: formatTime(time) }
    return appendData(attributes, body)
  })
  return Buffer.from(`{"events":[${texts.join(',')}]}`)
}

/** `flatContent` is the data of one event as it was published. */
export function flatContent(events: readonly FlowEvent[]): MessageContent {
  const [event] = events
  if (event === undefined || events.length > 1) throw new Error('The form flat takes one event.')
  if (event.body.length === 0) return { headers: { 'content-type': 'application/json' }, body: Buffer.from('null') }
  const isJson = parseJson(event.body) !== undefined
  const type = isJson ? 'application/json' : 'application/octet-stream'
  return { headers: { 'content-type': type }, body: Buffer.from(event.body) }
}

/** The attributes have their CloudEvents names. */
function toStandardEvent({ id, source, type, time, subject, body }: FlowEvent): string {
  return appendData({ id, source, type, time: formatTime(time), ...(subject !== undefined && { subject }) }, body)
}

/** `appendData` copies the data as received. Parsing and serializing it again would lose digits of long numbers. */
export function appendData(attributes: object, body: Uint8Array, mayBeJson = true): string {
  const head = JSON.stringify(attributes).slice(0, -1)
  if (body.length === 0) return `${head}}`
  const json = mayBeJson ? parseJson(body) : undefined
  if (json !== undefined) return `${head},"data":${json.text}}`
  return `${head},"data_base64":${JSON.stringify(Buffer.from(body).toString('base64'))}}`
}

/** A cache of one entry, because the timestamp of a batch is that of its latest event. */
const lastFormatted = { time: -1, text: '' }

export function formatTime(time: Millis): string {
  if (time !== lastFormatted.time) Object.assign(lastFormatted, { time, text: new Date(time).toISOString() })
  return lastFormatted.text
}
