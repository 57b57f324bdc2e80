// `parsePublishedEvents` reads the body of `POST /v1/events`: one event or a list in our JSON, or CloudEvents in any of their modes.
import { z } from 'zod'
import { messageOf, SluiceError } from '../errors.ts'
import type { EventInput } from '../model/event.ts'
import { createEvent } from '../model/new-event.ts'
import { parseCloudEvents } from '../sources/cloud-events.ts'
import { readElements, readMembers, isArraySlice, parseJsonSlice, type JsonSlice } from '../sources/json-slices.ts'
import type { RequestHead } from '../receive/receiver.ts'
import { describeIssue } from './issue-text.ts'
import { timeInput } from './schemas.ts'

const MAX_PUBLISHED = 1_000

const CLOUD_EVENTS = /^application\/cloudevents(?:-batch)?\+json\b/i
/** The extension attribute of a CloudEvent that names the tenant. */
const TENANT_ATTRIBUTE = 'tenant'

const EVENT = z.strictObject({
  type: z.string(),
  data: z
    .unknown()
    .optional()
    .meta({ description: 'Any JSON. It is stored as it was written, with all digits of its numbers.' }),
  id: z.string().exactOptional().meta({ description: 'A call that is repeated with the same id publishes once.' }),
  source: z.string().exactOptional().meta({ description: 'Default: `app`. Not the name of a source of the app.' }),
  subject: z.string().exactOptional(),
  tenant: z.string().exactOptional(),
  time: timeInput.exactOptional(),
  dedupeId: z.string().exactOptional().meta({ description: 'Default: the id.' }),
  attributes: z.record(z.string(), z.unknown()).exactOptional(),
})

type GivenEvent = z.output<typeof EVENT>

export const PUBLISHED: z.ZodType<readonly EventInput[]> = z.union([
  EVENT,
  z.array(EVENT).min(1).max(MAX_PUBLISHED),
]) as unknown as z.ZodType<readonly EventInput[]>

export function parsePublishedEvents(head: RequestHead, body: Uint8Array): readonly EventInput[] {
  const { headers } = head
  const contentType = headers['content-type'] ?? ''
  const isCloudEvent = CLOUD_EVENTS.test(contentType) || headers['ce-specversion'] !== undefined
  // HTML forms cannot send these content types and headers, so a form of a foreign page cannot call the API.
  if (!isCloudEvent && !/^application\/json\b/i.test(contentType)) throw wrongContentType()
  const events = isCloudEvent ? readCloudEvents(head, body) : readJson(body)
  if (events.length === 0 || events.length > MAX_PUBLISHED)
    throw invalid(`a list must have 1 to ${MAX_PUBLISHED} events; got ${events.length}.`)
  for (const [at, event] of events.entries()) assertEvent(event, events.length === 1 ? '' : `${at}: `)
  return events
}

/** The engine checks each event again; here a fault can still name the place of its event in the list. */
function assertEvent(event: EventInput, where: string): void {
  try {
    createEvent(event, { now: 0, dedupeFor: 0 })
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const { code, fix } = error
    const detail = messageOf(error)
      .slice(code.length + 2, -fix.length)
      .trim()
    throw new SluiceError('EVENT_INVALID', `body: ${where}${detail}`)
  }
}

function readCloudEvents({ method, url, headers, address }: RequestHead, body: Uint8Array): readonly EventInput[] {
  const parsed = parseCloudEvents({ method, url, headers, address, body }, TENANT_ATTRIBUTE)
  if ('code' in parsed) throw invalid(parsed.what)
  return parsed
}

function readJson(body: Uint8Array): readonly EventInput[] {
  const json = parseJsonSlice(body)
  if ('code' in json) throw invalid(json.what)
  const isList = isArraySlice(json.value)
  const slices = isList ? [...readElements(json.value)] : [json.value]
  return slices.map((slice, at) => readEvent(slice, isList ? `${at}: ` : ''))
}

function readEvent(slice: JsonSlice, where: string): EventInput {
  const result = EVENT.safeParse(JSON.parse(Buffer.from(slice).toString()), { error: describeIssue })
  if (!result.success) {
    const { path = [], message = 'the event is invalid' } = result.error.issues[0] ?? {}
    throw invalid(`${where}${path.length === 0 ? '' : `${path.join('.')}: `}${message}.`)
  }
  const { data: _parsed, ...event }: GivenEvent = result.data
  const bytes = readMembers(slice).get('data')
  return bytes === undefined ? event : { ...event, body: Buffer.from(bytes) }
}

function invalid(message: string): SluiceError {
  return new SluiceError('REQUEST_INVALID', `body: ${message}`)
}

function wrongContentType(): SluiceError {
  const what = 'The content type of the body must be application/json or that of CloudEvents.'
  return new SluiceError('BODY_NOT_JSON', what)
}
