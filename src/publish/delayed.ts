// This file implements `publish(event, { at })`: until then, the event waits wrapped in its own lane, and a run of that
// lane publishes it.
import type { Millis } from '../clock.ts'
import type { EventInput } from '../model/event.ts'
import { SluiceError } from '../errors.ts'
import type { FlowEvent } from '../model/flow-event.ts'
import { computeIdentity } from '../model/identity.ts'
import { createEvent } from '../model/new-event.ts'

export const DELAYED = 'sluice.delayed'

const WRAPPED_FIELDS = ['type', 'source', 'tenant', 'subject', 'attributes', 'id', 'dedupeId'] as const

/** The fields that the sender set. Omitted fields get their value now, and do not take part in the comparison of two
    wrapped events. */
type WrappedFields = Pick<EventInput, (typeof WRAPPED_FIELDS)[number]> & { readonly time?: Millis }

interface DelayedData {
  readonly at: Millis
  readonly body64: string
  readonly event: WrappedFields
  readonly to?: readonly string[]
}

/** The flows that the sender named. A symbol, so that no event of a user has it by chance. */
const TARGET_FLOWS = Symbol('to')

interface AddressedInput extends EventInput {
  readonly [TARGET_FLOWS]?: readonly string[] | undefined
}

/** The body waits as base64, which is a third longer, in an event that has its own bound. */
const BYTES_MAX = 60 * 1024 * 1024

/** The attribute of the wrapper with the id that the event will have. */
const ID_ATTRIBUTE = 'delayedid'

/** `wrapDelayed` gives the wrapper the tenant, subject and time that the event will have, so that filters find it. */
export function wrapDelayed(event: EventInput, at: Millis, now: Millis, to?: ReadonlySet<string>): EventInput {
  if (!Number.isFinite(at)) throw new SluiceError('EVENT_INVALID', 'at must be a Date or milliseconds since 1970.')
  // The same call as at publication, so that a fault is reported now.
  const { id, body: bytes, time, source, tenant, subject } = createEvent(event, { now, dedupeFor: 0 })
  if (bytes.length > BYTES_MAX) {
    throw new SluiceError('EVENT_INVALID', 'body or data must be at most 60 MB with at; nothing was stored.')
  }
  const fields = Object.fromEntries(WRAPPED_FIELDS.map((name) => [name, event[name]])) as unknown as WrappedFields
  const inside: DelayedData = {
    at,
    body64: Buffer.from(bytes).toString('base64'),
    event: event.time === undefined ? fields : { ...fields, time },
    ...(to !== undefined && { to: [...to] }),
  }
  const known = event.dedupeId ?? event.id
  const dedupe = known === undefined ? {} : { dedupeId: `${computeIdentity(source, tenant, known)}@${at}` }
  const attributes = { [ID_ATTRIBUTE]: id }
  return { type: DELAYED, source: DELAYED, tenant, subject, time, attributes, data: inside, ...dedupe }
}

export function unwrapDelayed(event: FlowEvent): EventInput {
  const { body64, event: fields, to } = event.data as DelayedData
  const { id = wrappedEventId(event) } = fields
  const addressed: AddressedInput = {
    time: event.time,
    ...fields,
    id,
    dedupeId: fields.dedupeId ?? id,
    body: Buffer.from(body64, 'base64'),
    [TARGET_FLOWS]: to,
  }
  return addressed
}

/** `isUnwrapped` returns whether the event waited wrapped for its time. */
export function isUnwrapped(event: EventInput): boolean {
  return typeof event === 'object' && event !== null && TARGET_FLOWS in event
}

/** `targetFlowsOf` returns the flows that an unwrapped event is for, or undefined for every matching flow. */
export function targetFlowsOf(event: EventInput): ReadonlySet<string> | undefined {
  const to = (event as AddressedInput)[TARGET_FLOWS]
  return to === undefined ? undefined : new Set(to)
}

/** `wrappedEventId` returns the id that the event in a wrapper will have. */
export function wrappedEventId({ id, attributes }: Pick<FlowEvent, 'id' | 'attributes'>): string {
  const wrapped = attributes[ID_ATTRIBUTE]
  return typeof wrapped === 'string' ? wrapped : id
}

export function delayedUntil(event: FlowEvent): Millis {
  return (event.data as DelayedData).at
}
