// `parseOutput` checks what a transformation returned. It was written by a stranger, so nothing in it is trusted.
import { isTooDeep, MAX_JSON_DEPTH, parseData } from '../../model/event.ts'
import { withContent, type FlowEvent } from '../../model/flow-event.ts'
import type { MessageContent } from '../forms/cloud-events.ts'
import { appendData, formatTime } from '../forms/events.ts'
import { isHeaderText } from '../http/headers.ts'

export type TransformedMessage =
  /** Nothing is posted. */
  | { readonly kind: 'skipped' }
  /** The form of the endpoint makes a body of them. */
  | { readonly kind: 'events'; readonly events: readonly FlowEvent[] }
  | { readonly kind: 'body'; readonly content: MessageContent }

/** `TransformError` makes the message a dead letter. The same code would fail again, so there is no retry. */
export class TransformError extends Error {
  override readonly name = 'TransformError'

  constructor(what: string, line?: number) {
    super(`transform-failed: ${what}${line === undefined ? '' : ` (line ${line})`}`)
  }
}

/** What a script may not change, because the subscriber and Sluice know the event by it. */
const FIXED = ['source', 'time', 'tenant'] as const
const TEXT_MAX = { type: 1_024, subject: 16_384 } as const
const BODY_MEMBERS: ReadonlySet<string> = new Set(['body', 'contentType'])
const RULE = 'must return a list of events, { body } or nothing'

/** `toInput` is an event as a script gets it, as JSON. Data that is not JSON is in `data_base64`, as in the bodies. */
export function toInput(event: FlowEvent): string {
  return appendData(toAttributes(event), event.body)
}

function toAttributes({ id, source, type, time, tenant, subject }: FlowEvent): Readonly<Record<string, string>> {
  const named = { id, source, type, time: formatTime(time) }
  return { ...named, ...(tenant !== undefined && { tenant }), ...(subject !== undefined && { subject }) }
}

export function parseOutput(output: string | undefined, events: readonly FlowEvent[]): TransformedMessage {
  if (output === undefined) return { kind: 'skipped' }
  const value: unknown = JSON.parse(output)
  if (Array.isArray(value)) return parseEvents(value, events)
  if (typeof value !== 'object' || value === null)
    throw new TransformError(`It ${RULE}; it returned a ${typeof value}.`)
  const names = Object.keys(value)
  if (!Object.hasOwn(value, 'body') || names.some((name) => !BODY_MEMBERS.has(name))) {
    throw new TransformError(`It ${RULE}; it returned an object with ${names.slice(0, 10).join(', ') || 'no members'}.`)
  }
  return { kind: 'body', content: parseBody(value as { readonly body: unknown; readonly contentType?: unknown }) }
}

/** A text is sent as it is, anything else as JSON. */
function parseBody({ body, contentType }: { readonly body: unknown; readonly contentType?: unknown }): MessageContent {
  const isText = typeof body === 'string'
  const type = contentType ?? (isText ? 'text/plain; charset=utf-8' : 'application/json')
  if (typeof type !== 'string' || type === '' || type.length > 200 || !isHeaderText(type)) {
    throw new TransformError("contentType must be a media type, e.g. 'text/xml'.")
  }
  return { headers: { 'content-type': type }, body: Buffer.from(isText ? body : JSON.stringify(body)) }
}

function parseEvents(list: readonly unknown[], events: readonly FlowEvent[]): TransformedMessage {
  if (list.length === 0) return { kind: 'skipped' }
  const left = new Map(events.map((event) => [event.id, event]))
  const changed = list.map((given, at) => {
    const where = `events[${at}]`
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      throw new TransformError(`${where} must be an event.`)
    }
    const { id } = given as { readonly id?: unknown }
    const event = typeof id === 'string' ? left.get(id) : undefined
    if (typeof id !== 'string' || event === undefined) {
      throw new TransformError(`${where}.id must be the id of an event of this batch, and name each event once.`)
    }
    left.delete(id)
    return changeEvent(event, given as Readonly<Record<string, unknown>>, where)
  })
  return { kind: 'events', events: changed }
}

/** A member that is missing stays as it is. Unchanged data keeps its bytes. */
function changeEvent(event: FlowEvent, given: Readonly<Record<string, unknown>>, where: string): FlowEvent {
  const known = toAttributes(event)
  for (const name of FIXED) {
    if (name in given && given[name] !== known[name]) throw new TransformError(`${where}.${name} cannot be changed.`)
  }
  const { type = event.type, subject = event.subject ?? '', data } = given
  for (const [name, value] of Object.entries({ type, subject })) {
    const most = TEXT_MAX[name as keyof typeof TEXT_MAX]
    const isValid = typeof value === 'string' && value.isWellFormed() && value.length <= most
    if (!isValid || (name === 'type' && value === '')) {
      throw new TransformError(`${where}.${name} must be a text of at most ${most} characters.`)
    }
  }
  const content = { type: type as string, subject: subject as string }
  if (data === undefined || JSON.stringify(data) === JSON.stringify(parseData(event.body)))
    return withContent(event, content)
  const body = Buffer.from(JSON.stringify(data))
  if (isTooDeep(body)) throw new TransformError(`${where}.data must be nested no deeper than ${MAX_JSON_DEPTH}.`)
  return withContent(event, { ...content, body })
}
