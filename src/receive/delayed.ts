// `publish(event, { at })`: until then the event waits in a lane of its own, wrapped; its run publishes it.
import type { Millis } from '../clock.ts'
import type { EventInput } from '../model/event-input.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { identity } from '../model/identity.ts'
import { newEvent } from './new-event.ts'

export const DELAYED = 'sluice.delayed'

const SAID = ['type', 'source', 'tenant', 'subject', 'attributes', 'id', 'dedupeId'] as const

/** What the sender said of it. What was left out is decided now, and is no part of what makes two of them differ. */
type Said = Pick<EventInput, (typeof SAID)[number]> & { readonly time?: Millis }

interface Wrapped {
  readonly at: Millis
  readonly body64: string
  readonly event: Said
  readonly to?: readonly string[]
}

/** The flows that the sender named. A symbol, so that no event of a user's can have it by chance. */
const TO = Symbol('to')

interface Addressed extends EventInput {
  readonly [TO]?: readonly string[]
}

/** It waits as text, which is a third longer, in an event that has a bound of its own. */
const BYTES_MAX = 60 * 1024 * 1024

/** Its subject and time are the id and the time that the event inside will have. */
export function wrapped(event: EventInput, at: Millis, now: Millis, to?: ReadonlySet<string>): EventInput {
  if (!Number.isFinite(at)) throw new SluiceError('EVENT_INVALID', 'at must be a Date or milliseconds since 1970.')
  // As it will be named then: what is wrong with it is said now.
  const { id, body: bytes, time, source, tenant } = newEvent(event, { now, dedupeFor: 0 })
  if (bytes.length > BYTES_MAX) {
    throw new SluiceError('EVENT_INVALID', 'body or data must be at most 60 MB with at; nothing was stored.')
  }
  const said = Object.fromEntries(SAID.map((name) => [name, event[name]])) as unknown as Said
  const inside: Wrapped = {
    at,
    body64: Buffer.from(bytes).toString('base64'),
    event: event.time === undefined ? said : { ...said, time },
    ...(to !== undefined && { to: [...to] }),
  }
  const known = event.dedupeId ?? event.id
  const dedupe = known === undefined ? {} : { dedupeId: `${identity(source, tenant, known)}@${at}` }
  return { type: DELAYED, source: DELAYED, tenant, subject: id, time, data: inside, ...dedupe }
}

export function unwrapped(event: FlowEvent): EventInput {
  const { body64, event: said, to } = event.data as Wrapped
  // One that an earlier version wrapped has no subject.
  const { id = event.subject } = said
  const named = {
    time: event.time,
    ...said,
    ...(id !== undefined && { id }),
    dedupeId: said.dedupeId ?? id ?? event.id,
  }
  const addressed: Addressed = { ...named, body: Buffer.from(body64, 'base64'), ...(to !== undefined && { [TO]: to }) }
  return addressed
}

/** The flows that an unwrapped event is for; undefined: whoever wants it. */
export function addressedTo(event: EventInput): ReadonlySet<string> | undefined {
  const to = (event as Addressed)[TO]
  return to === undefined ? undefined : new Set(to)
}

/** The id that the event will have. */
export function idInside({ subject, id }: FlowEvent): string {
  return subject ?? id
}

export function dueAt(event: FlowEvent): Millis {
  return (event.data as Wrapped).at
}
