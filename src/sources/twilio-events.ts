// What Twilio tells of: messages, calls and the like as fields, whose kind has to be read from what they are about; event streams as CloudEvents.
import type { ReceivedRequest, Refusal, SourceEvent } from '../receive/source.ts'
import { fieldsOf, formOf } from './form-body.ts'
import { isObject, jsonOf, type Json, type JsonObject } from './json-body.ts'
import { elementsOf, writtenOf } from './json-text.ts'
import { eventNamed, momentOf, nameOf } from './named-by.ts'
import { refusal } from './signature.ts'

const TOKEN = 'i-twilio-idempotency-token'
const UNNAMED_TYPE = 'received'

/** Which bytes are JSON is asked of them: the content type is not signed. */
export function twilioEvents(request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const [first] = request.body
  if (request.method !== 'GET' && first === 0x5b) return fromStream(request)
  if (request.method !== 'GET' && first === 0x7b) {
    const json = jsonOf(request.body)
    return 'code' in json ? json : [fromFields(isObject(json.value) ? json.value : {}, request.body, request)]
  }
  const form = request.method === 'GET' ? request.url.searchParams : formOf(request)
  if ('code' in form) return form
  const fields = fieldsOf(form)
  return [fromFields(fields, Buffer.from(JSON.stringify(fields)), request)]
}

function fromFields(fields: JsonObject, body: Uint8Array, { headers }: ReceivedRequest): SourceEvent {
  const field = (name: string): string | undefined => nameOf(fields[name])
  const message = field('MessageSid') ?? field('SmsSid')
  const status = field('MessageStatus') ?? field('SmsStatus')
  // A message is in each state once, and that is signed; the token is not, but it is there for everything else.
  const isMessage = message !== undefined && status !== undefined && field('EventType') === undefined
  return eventNamed(
    {
      type: typeOf(field),
      dedupeId: isMessage ? `${message}/${status}` : nameOf(headers[TOKEN]),
      subject: message ?? field('CallSid') ?? field('ConversationSid'),
      tenant: field('AccountSid'),
      time: momentOf(field('DateCreated')),
    },
    body,
  )
}

/** Some have a name of their own; of the others the state is told. */
function typeOf(field: (name: string) => string | undefined): string {
  const own = field('EventType') ?? field('StatusCallbackEvent')
  if (own !== undefined) return own
  const [recording, call] = [field('RecordingStatus'), field('CallStatus')]
  const message = field('MessageStatus') ?? field('SmsStatus')
  if (recording !== undefined) return `recording.${recording}`
  if (message !== undefined) return `message.${message}`
  return call === undefined ? UNNAMED_TYPE : `call.${call}`
}

/** Several CloudEvents in one request. */
function fromStream({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const written = writtenOf(body)
  if ('code' in written) return written
  const events = elementsOf(written.value).map(fromCloudEvent)
  return events.every((event) => event !== undefined) ? events : NO_EVENTS
}

function fromCloudEvent(written: Uint8Array): SourceEvent | undefined {
  const json = jsonOf(written)
  const event: Json = 'code' in json ? null : json.value
  if (!isObject(event)) return undefined
  const [type, dedupeId] = [nameOf(event['type']), nameOf(event['id'])]
  if (type === undefined || dedupeId === undefined) return undefined
  const data = isObject(event['data']) ? event['data'] : {}
  const tenant = nameOf(data['accountSid'])
  return eventNamed(
    { type, dedupeId, subject: nameOf(event['subject']), tenant, time: momentOf(nameOf(event['time'])) },
    written,
  )
}

const NO_EVENTS: Refusal = refusal(
  'BODY_NOT_UNDERSTOOD',
  'The list has something that is no CloudEvent.',
  'Only Twilio is to call this address.',
)
