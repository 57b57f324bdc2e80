// `slack` verifies the signed time and body. Events arrive as JSON, slash commands and clicks as forms. A signed
// challenge proves the address.
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type {
  SignRequest,
  ParseEvents,
  ParsedEvents,
  HandshakeResult,
  ReceivedRequest,
  Refusal,
  Source,
} from '../receive/source.ts'
import { toFields, parseForm } from './form-body.ts'
import { refuseHandshake } from './handshake.ts'
import { isObject, parseJson, parseJsonObject, type Json, type JsonObject } from './json-body.ts'
import { parseTime, toName } from './event-names.ts'
import {
  WRONG_SIGNATURE,
  computeMac,
  formatSeconds,
  hasValidMac,
  missingSignature,
  notUnderstood,
  parseSecrets,
  parseTolerance,
  signJson,
  timestampFault,
  type Secrets,
} from './signature.ts'

export interface SlackOptions {
  /** The signing secret of the app. */
  readonly secret: Secrets
  readonly tolerance?: Duration
}

const SIGNATURE = 'x-slack-signature'
const TIMESTAMP = 'x-slack-request-timestamp'
const MAC = { algorithm: 'sha256', encoding: 'hex', prefix: 'v0=' } as const
const SLASH_COMMAND = 'slash_command'

export function slack(options: SlackOptions): Source {
  assertKnownOptions(options, ['secret', 'tolerance'], 'slack: ')
  const tolerance = parseTolerance('slack', options.tolerance)
  return {
    scheme: 'slack',
    secrets: parseSecrets('slack', options.secret),
    tolerance,
    verify: ({ headers, body }, { now, secrets }) => {
      const [given, time] = [headers[SIGNATURE], headers[TIMESTAMP]]
      if (given === undefined) return missingSignature(SIGNATURE)
      if (time === undefined) return timestampFault('', now, tolerance)
      return hasValidMac([given], [`v0:${time}:`, body], secrets, MAC)
        ? timestampFault(time, now, tolerance)
        : WRONG_SIGNATURE
    },
    handshake: { verified: true, answer: handleHandshake },
    events: parseEvents,
    sign,
    // The response has no body, because Slack shows the response to a slash command to the person.
    answer: { status: 200 },
  }
}

/** The content type is not signed. The bytes are, and only JSON begins with a brace. */
function isFormBody({ body }: ReceivedRequest): boolean {
  return body[0] !== 0x7b
}

function handleHandshake(request: ReceivedRequest): HandshakeResult | undefined {
  if (isFormBody(request)) {
    const form = parseForm(request)
    if ('code' in form) return { kind: 'refused', refusal: form }
    return form.get('ssl_check') === '1' ? { kind: 'answer', answer: { status: 200 } } : undefined
  }
  const json = parseJsonObject(request)
  if ('code' in json || json.value['type'] !== 'url_verification') return undefined
  const { challenge } = json.value
  if (typeof challenge === 'string') {
    const headers = { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' }
    return { kind: 'answer', answer: { status: 200, headers, body: JSON.stringify({ challenge }) } }
  }
  return refuseHandshake('The challenge must be a text.', 'Make sure that only Slack calls this URL.')
}

const parseEvents: ParseEvents = (request) => {
  if (!isFormBody(request)) {
    const json = parseJsonObject(request)
    return 'code' in json ? json : fromEventsApi(json.value, request)
  }
  const form = parseForm(request)
  if ('code' in form) return form
  const payload = form.get('payload')
  if (payload === null) return fromCommand(toFields(form), request)
  const body = Buffer.from(payload)
  const json = parseJson(body)
  return 'code' in json ? json : fromInteraction(isObject(json.value) ? json.value : {}, body, request)
}

function fromEventsApi(json: JsonObject, request: ReceivedRequest): ParsedEvents {
  const event = toObject(json['event'])
  const type = toName(event['type']) ?? toName(json['type'])
  if (type === undefined) return NO_TYPE
  const item = toObject(event['item'])
  const names = {
    type,
    dedupeId: toName(json['event_id']) ?? signatureOf(request),
    subject: readId(event['channel']) ?? readId(item['channel']) ?? readId(event['user']),
    tenant: toName(json['team_id']) ?? toName(json['enterprise_id']),
    time: parseTime(toName(json['event_time'])),
  }
  return [{ ...names, body: request.body }]
}

function fromCommand(fields: JsonObject, request: ReceivedRequest): ParsedEvents {
  if (toName(fields['command']) === undefined) return NO_TYPE
  const names = {
    type: SLASH_COMMAND,
    dedupeId: toName(fields['trigger_id']) ?? signatureOf(request),
    subject: toName(fields['channel_id']),
    tenant: toName(fields['team_id']) ?? toName(fields['enterprise_id']),
  }
  return [{ ...names, body: Buffer.from(JSON.stringify(fields)) }]
}

/** The request comes from buttons, menus, shortcuts and views: the JSON is in one field of a form. */
function fromInteraction(json: JsonObject, body: Uint8Array, request: ReceivedRequest): ParsedEvents {
  const type = toName(json['type'])
  if (type === undefined) return NO_TYPE
  const names = {
    type,
    dedupeId: toName(json['trigger_id']) ?? signatureOf(request),
    subject: readId(json['channel']) ?? readId(json['user']),
    tenant: readId(json['team']) ?? readId(json['enterprise']),
    time: parseTime(toName(json['action_ts'])),
  }
  return [{ ...names, body }]
}

/** A few kinds have no id. The time is signed, so a signature repeats only if the request does. */
function signatureOf({ headers }: ReceivedRequest): string | undefined {
  return toName(headers[SIGNATURE])
}

function toObject(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {}
}

/** Slack writes channels, users and teams as an id or as an object with an id. */
function readId(value: Json | undefined): string | undefined {
  return isObject(value) ? toName(value['id']) : toName(value)
}

const NO_TYPE: Refusal = notUnderstood(
  'The request is not an event, command or interaction.',
  'Make sure that only Slack calls this URL.',
)

const sign: SignRequest = (input) => {
  const { id, type = 'message', secret } = input
  const seconds = formatSeconds(input.now)
  const example = {
    type: 'event_callback',
    team_id: 'T0TEST',
    event_id: `Ev${id}`,
    event_time: Number(seconds),
    event: { type, channel: 'C0TEST', user: 'U0TEST', text: 'A test.' },
  }
  return signJson(input, example, (body) => ({
    [TIMESTAMP]: seconds,
    [SIGNATURE]: computeMac(secret, [`v0:${seconds}:`, body], MAC),
  }))
}
