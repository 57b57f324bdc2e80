// The body of a delivery: the same events give the same bytes at every try.
import type { Millis } from '../clock.ts'
import { jsonOf, type Event } from '../model/event.ts'

export type DeliveredEvent = Pick<Event, 'id' | 'source' | 'type' | 'time' | 'subject' | 'body'>

export type BatchForm =
  /** As Standard Webhooks advises. */
  | { readonly kind: 'standard'; readonly type: string }
  /** `{ events: […] }` and nothing around it. */
  | { readonly kind: 'events' }

/** By time, then by id (D2): arrival decides what is in a batch, not how it is read. */
export function inOrder<E extends Pick<Event, 'id' | 'time'>>(events: readonly E[]): readonly E[] {
  return events.toSorted((one, other) => one.time - other.time || (one.id < other.id ? -1 : 1))
}

/** `events` in their order, at least one. */
export function batchBody(form: BatchForm, events: readonly DeliveredEvent[]): Buffer {
  if (form.kind === 'events') return Buffer.from(`{"events":[${events.map(plain).join(',')}]}`)
  const latest = events.reduce((time, event) => Math.max(time, event.time), 0)
  const head = `"type":${JSON.stringify(form.type)},"timestamp":${JSON.stringify(instant(latest))}`
  return Buffer.from(`{${head},"data":{"events":[${events.map(named).join(',')}]}}`)
}

/** With the names of CloudEvents. */
function named({ id, source, type, time, subject, body }: DeliveredEvent): string {
  const attributes = { id, source, type, time: instant(time), ...(subject === '' ? {} : { subject }) }
  return withData(attributes, body)
}

function plain({ id, type, time, body }: DeliveredEvent): string {
  return withData({ id, eventType: type, createdAt: instant(time) }, body)
}

/** Data goes out as it came in: parsed and written anew, long numbers would lose digits. */
function withData(attributes: object, body: Uint8Array): string {
  const head = JSON.stringify(attributes).slice(0, -1)
  if (body.length === 0) return `${head}}`
  const json = jsonOf(body)
  if (json !== undefined) return `${head},"data":${json.text}}`
  return `${head},"data_base64":${JSON.stringify(Buffer.from(body).toString('base64'))}}`
}

/** That of the batch is that of its latest event. */
const last = { time: -1, text: '' }

function instant(time: Millis): string {
  if (time !== last.time) Object.assign(last, { time, text: new Date(time).toISOString() })
  return last.text
}
