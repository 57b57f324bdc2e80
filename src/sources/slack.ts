// Slack: time and body signed. Events come as JSON, slash commands and clicks as forms; the address is proven by a signed challenge.
import type { Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import type { HandshakeResult, ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { fieldsOf, formOf } from './form-body.ts'
import { isObject, jsonOf, objectOf, type Json, type JsonObject } from './json-body.ts'
import { eventNamed, momentOf, nameOf } from './named-by.ts'
import { FORGED, isSigned, refusal, secretsOf, timeFault, toleranceOf, unsigned } from './signature.ts'

export interface SlackOptions {
  /** The signing secret of the app. */
  readonly secret: string | readonly string[]
  readonly tolerance?: Duration
}

const KNOWN: ReadonlySet<string> = new Set<keyof SlackOptions>(['secret', 'tolerance'])
const SIGNATURE = 'x-slack-signature'
const TIMESTAMP = 'x-slack-request-timestamp'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'v0=' } as const
const SLASH_COMMAND = 'slash_command'

export function slack(options: SlackOptions): Source {
  onlyKnown(options, KNOWN, 'slack: ')
  const tolerance = toleranceOf('slack', options.tolerance)
  return {
    scheme: 'slack',
    secrets: secretsOf('slack', options.secret),
    tolerance,
    verify: ({ headers, body }, { now, secrets }) => {
      const [given, time] = [headers[SIGNATURE], headers[TIMESTAMP]]
      if (given === undefined) return unsigned(SIGNATURE)
      if (time === undefined) return timeFault('', now, tolerance)
      return isSigned([given], [`v0:${time}:`, body], secrets, MAC) ? timeFault(time, now, tolerance) : FORGED
    },
    handshake: { verified: true, answer: greeting },
    events: eventsOf,
    // Without a body: what a slash command is answered is shown to the person.
    answer: { status: 200 },
  }
}

/** The content type is not signed; the bytes are, and only JSON begins so. */
function isForm({ body }: ReceivedRequest): boolean {
  return body[0] !== 0x7b
}

function greeting(request: ReceivedRequest): HandshakeResult | undefined {
  if (isForm(request)) {
    const form = formOf(request)
    if ('code' in form) return { kind: 'refused', refusal: form }
    return form.get('ssl_check') === '1' ? { kind: 'answer', answer: { status: 200 } } : undefined
  }
  const json = objectOf(request)
  if ('code' in json || json.value['type'] !== 'url_verification') return undefined
  const { challenge } = json.value
  if (typeof challenge === 'string') {
    const headers = { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' }
    return { kind: 'answer', answer: { status: 200, headers, body: JSON.stringify({ challenge }) } }
  }
  const fix = 'Only Slack is to call this address.'
  return { kind: 'refused', refusal: refusal('HANDSHAKE_REFUSED', 'The challenge is no text.', fix) }
}

function eventsOf(request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  if (!isForm(request)) {
    const json = objectOf(request)
    return 'code' in json ? json : fromEventsApi(json.value, request)
  }
  const form = formOf(request)
  if ('code' in form) return form
  const payload = form.get('payload')
  if (payload === null) return fromCommand(fieldsOf(form), request)
  const body = Buffer.from(payload)
  const json = jsonOf(body)
  return 'code' in json ? json : fromInteraction(isObject(json.value) ? json.value : {}, body, request)
}

function fromEventsApi(json: JsonObject, request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const event = inside(json['event'])
  const type = nameOf(event['type']) ?? nameOf(json['type'])
  if (type === undefined) return NO_TYPE
  const item = inside(event['item'])
  const names = {
    type,
    dedupeId: nameOf(json['event_id']) ?? signatureOf(request),
    subject: idOf(event['channel']) ?? idOf(item['channel']) ?? idOf(event['user']),
    tenant: nameOf(json['team_id']) ?? nameOf(json['enterprise_id']),
    time: momentOf(nameOf(json['event_time'])),
  }
  return [eventNamed(names, request.body)]
}

function fromCommand(fields: JsonObject, request: ReceivedRequest): readonly SourceEvent[] | Refusal {
  if (nameOf(fields['command']) === undefined) return NO_TYPE
  const names = {
    type: SLASH_COMMAND,
    dedupeId: nameOf(fields['trigger_id']) ?? signatureOf(request),
    subject: nameOf(fields['channel_id']),
    tenant: nameOf(fields['team_id']) ?? nameOf(fields['enterprise_id']),
  }
  return [eventNamed(names, Buffer.from(JSON.stringify(fields)))]
}

/** Buttons, menus, shortcuts and views: the JSON is in one field of a form. */
function fromInteraction(
  json: JsonObject,
  body: Uint8Array,
  request: ReceivedRequest,
): readonly SourceEvent[] | Refusal {
  const type = nameOf(json['type'])
  if (type === undefined) return NO_TYPE
  const names = {
    type,
    dedupeId: nameOf(json['trigger_id']) ?? signatureOf(request),
    subject: idOf(json['channel']) ?? idOf(json['user']),
    tenant: idOf(json['team']) ?? idOf(json['enterprise']),
    time: momentOf(nameOf(json['action_ts'])),
  }
  return [eventNamed(names, body)]
}

/** A few kinds have no id. The time is signed, so that a signature comes again only if the request does. */
function signatureOf({ headers }: ReceivedRequest): string | undefined {
  return nameOf(headers[SIGNATURE])
}

function inside(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {}
}

/** Slack writes channels, users and teams as an id or as an object that has one. */
function idOf(value: Json | undefined): string | undefined {
  return isObject(value) ? nameOf(value['id']) : nameOf(value)
}

const NO_TYPE: Refusal = refusal(
  'BODY_NOT_UNDERSTOOD',
  'It is no event, command or interaction.',
  'Only Slack is to call this address.',
)
