// `publish(event, { at })`: until then the event waits in a lane of its own, wrapped; its run publishes it.
import type { Millis } from '../clock.ts'
import type { EventInput } from '../model/event-input.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { newEvent } from './new-event.ts'

export const DELAYED = 'sluice.delayed'

interface Wrapped {
  readonly at: Millis
  readonly body64: string
  readonly event: Omit<EventInput, 'data' | 'body'>
}

export function wrapped(event: EventInput, at: Millis, now: Millis): EventInput {
  if (!Number.isFinite(at)) throw new SluiceError('EVENT_INVALID', 'at must be a Date or milliseconds since 1970.')
  // As it will be named then: what is wrong with it is said now.
  const { body: bytes, time } = newEvent(event, { now, dedupeFor: 0 })
  const { data: _data, body: _body, ...rest } = event
  const inside: Wrapped = { at, body64: Buffer.from(bytes).toString('base64'), event: { ...rest, time } }
  const known = event.dedupeId ?? event.id
  const tenant = event.tenant === undefined ? {} : { tenant: event.tenant }
  const dedupe = known === undefined ? {} : { dedupeId: `${event.source ?? 'app'}/${known}@${at}` }
  return { type: DELAYED, source: DELAYED, data: inside, ...tenant, ...dedupe }
}

export function unwrapped(event: FlowEvent): EventInput {
  const { body64, event: rest } = event.data as Wrapped
  return { dedupeId: event.id, ...rest, body: Buffer.from(body64, 'base64') }
}

export function dueAt(event: FlowEvent): Millis {
  return (event.data as Wrapped).at
}
