// `batchBody` builds the body of a delivery. The same events give the same bytes on every attempt.
import type { Millis } from '../clock.ts'
import { parseJson, type Event } from '../model/event.ts'

export type DeliveredEvent = Pick<Event, 'id' | 'source' | 'type' | 'time' | 'subject' | 'body'>

export type BatchForm =
  /** The envelope that Standard Webhooks recommends. */
  | { readonly kind: 'standard'; readonly type: string }
  /** `{ events: […] }` without an envelope. */
  | { readonly kind: 'events' }

/** `batchBody` returns the body for at least one event. The events keep their order, which is that of their positions (D2). */
export function batchBody(form: BatchForm, events: readonly DeliveredEvent[]): Buffer {
  if (form.kind === 'events') return Buffer.from(`{"events":[${events.map(toPlainEvent).join(',')}]}`)
  const latest = events.reduce((time, event) => Math.max(time, event.time), 0)
  const head = `"type":${JSON.stringify(form.type)},"timestamp":${JSON.stringify(formatTime(latest))}`
  return Buffer.from(`{${head},"data":{"events":[${events.map(toStandardEvent).join(',')}]}}`)
}

/** The attributes have their CloudEvents names. */
function toStandardEvent({ id, source, type, time, subject, body }: DeliveredEvent): string {
  const attributes = { id, source, type, time: formatTime(time), ...(subject === '' ? {} : { subject }) }
  return appendData(attributes, body)
}

function toPlainEvent({ id, type, time, body }: DeliveredEvent): string {
  return appendData({ id, eventType: type, createdAt: formatTime(time) }, body)
}

/** The data is copied as received. Parsing and serializing it again would lose digits of long numbers. */
function appendData(attributes: object, body: Uint8Array): string {
  const head = JSON.stringify(attributes).slice(0, -1)
  if (body.length === 0) return `${head}}`
  const json = parseJson(body)
  if (json !== undefined) return `${head},"data":${json.text}}`
  return `${head},"data_base64":${JSON.stringify(Buffer.from(body).toString('base64'))}}`
}

/** A cache of one entry, because the timestamp of a batch is that of its latest event. */
const lastFormatted = { time: -1, text: '' }

function formatTime(time: Millis): string {
  if (time !== lastFormatted.time) Object.assign(lastFormatted, { time, text: new Date(time).toISOString() })
  return lastFormatted.text
}
