// This file parses Twilio's messages and calls, which are fields whose event type must be derived, and event streams,
// which are CloudEvents.
import type { ParsedEvents, ReceivedRequest, Refusal, SourceEvent } from '../receive/source.ts'
import { toFields, parseForm } from './form-body.ts'
import { isObject, parseJson, type Json, type JsonObject } from './json-body.ts'
import { readElements, parseJsonSlice } from './json-slices.ts'
import { parseTime, toName } from './event-names.ts'
import { notUnderstood } from './signature.ts'

const TOKEN = 'i-twilio-idempotency-token'
const UNNAMED_TYPE = 'received'

/** `parseTwilioEvents` detects JSON by the first byte, because the content type is not signed. */
export function parseTwilioEvents(request: ReceivedRequest): ParsedEvents {
  const [first] = request.body
  if (request.method !== 'GET' && first === 0x5b) return fromStream(request)
  if (request.method !== 'GET' && first === 0x7b) {
    const json = parseJson(request.body)
    return 'code' in json ? json : [fromFields(isObject(json.value) ? json.value : {}, request.body, request)]
  }
  const form = request.method === 'GET' ? request.url.searchParams : parseForm(request)
  if ('code' in form) return form
  const fields = toFields(form)
  return [fromFields(fields, Buffer.from(JSON.stringify(fields)), request)]
}

function fromFields(fields: JsonObject, body: Uint8Array, { headers }: ReceivedRequest): SourceEvent {
  const field = (name: string): string | undefined => toName(fields[name])
  const message = field('MessageSid') ?? field('SmsSid')
  const status = field('MessageStatus') ?? field('SmsStatus')
  // A message is in each state once, and that is signed. The token is not signed, but everything else has only the
  // token.
  const isMessage = message !== undefined && status !== undefined && field('EventType') === undefined
  return {
    type: findType(field),
    dedupeId: isMessage ? `${message}/${status}` : toName(headers[TOKEN]),
    body,
    subject: message ?? field('CallSid') ?? field('ConversationSid'),
    tenant: field('AccountSid'),
    time: parseTime(field('DateCreated')),
  }
}

/** `findType` uses the event's own name, or else its state. */
function findType(field: (name: string) => string | undefined): string {
  const own = field('EventType') ?? field('StatusCallbackEvent')
  if (own !== undefined) return own
  const [recording, call] = [field('RecordingStatus'), field('CallStatus')]
  const message = field('MessageStatus') ?? field('SmsStatus')
  if (recording !== undefined) return `recording.${recording}`
  if (message !== undefined) return `message.${message}`
  return call === undefined ? UNNAMED_TYPE : `call.${call}`
}

/** A stream request holds several CloudEvents. */
function fromStream({ body }: ReceivedRequest): ParsedEvents {
  const written = parseJsonSlice(body)
  if ('code' in written) return written
  const events = readElements(written.value).map(fromCloudEvent)
  return events.every((event) => event !== undefined) ? events : NO_EVENTS
}

function fromCloudEvent(written: Uint8Array): SourceEvent | undefined {
  const json = parseJson(written)
  const event: Json = 'code' in json ? null : json.value
  if (!isObject(event)) return undefined
  const [type, dedupeId] = [toName(event['type']), toName(event['id'])]
  if (type === undefined || dedupeId === undefined) return undefined
  const data = isObject(event['data']) ? event['data'] : {}
  return {
    type,
    dedupeId,
    body: written,
    subject: toName(event['subject']),
    tenant: toName(data['accountSid']),
    time: parseTime(toName(event['time'])),
  }
}

const NO_EVENTS: Refusal = notUnderstood(
  'The list must contain only CloudEvents.',
  'Make sure that only Twilio calls this URL.',
)
