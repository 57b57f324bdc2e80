// `strava` receives notices of changes, which the app then fetches. Sources disagree on whether Strava signs them, so
// the subscription id is always checked.
import { hash } from 'node:crypto'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type {
  ParseEvents,
  ReceivedRequest,
  Refusal,
  Source,
  VerifyContext,
  SignedRequest,
  SignOptions,
} from '../receive/source.ts'
import { credentialsFault } from './credentials.ts'
import { parseUnixSeconds } from './event-names.ts'
import { createHubHandshake } from './handshake.ts'
import { readMembers, readWord, parseJsonSlice, type JsonSlice } from './json-slices.ts'
import {
  TOLERANCE,
  formatSeconds,
  formatTimedSignature,
  missingSignature,
  notUnderstood,
  parseSecrets,
  parseTimedSignature,
  signJson,
  timedSignatureFault,
  type Secrets,
} from './signature.ts'

export interface StravaOptions {
  /** The token that was passed to Strava when the subscription was created. */
  readonly verifyToken: Secrets
  /** The id that Strava returned for the subscription. */
  readonly subscriptionId: number | string
  /** If set, every event must carry a signature by it. */
  readonly secret?: Secrets
}

const HEADER = 'x-strava-signature'

export function strava(options: StravaOptions): Source {
  assertKnownOptions(options, ['verifyToken', 'subscriptionId', 'secret'], 'strava: ')
  const verifyTokens = parseSecrets('strava', options.verifyToken, 'verifyToken')
  const subscription = parseSubscriptionId(options.subscriptionId)
  // An unset environment variable must not turn the signature check off.
  const isSignedToo = 'secret' in options
  return {
    scheme: 'strava',
    secrets: isSignedToo ? parseSecrets('strava', options.secret) : [subscription],
    dedupeFor: isSignedToo ? '7d' : '30d',
    tolerance: isSignedToo ? TOLERANCE : undefined,
    handshake: createHubHandshake(verifyTokens, (challenge) => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
      body: JSON.stringify({ 'hub.challenge': challenge }),
    })),
    verify: (request, context) =>
      (isSignedToo ? signatureFault(request, context) : undefined) ?? subscriptionFault(request, subscription),
    events: parseEvents,
    sign: (input) => sign(input, subscription, isSignedToo),
    // Strava sends again after any status but 200.
    answer: { status: 200 },
  }
}

function parseSubscriptionId(id: unknown): string {
  const text = typeof id === 'number' && Number.isSafeInteger(id) ? String(id) : id
  if (typeof text === 'string' && /^\d{1,20}$/.test(text)) return text
  throw invalidOption(`strava: subscriptionId must be the number that Strava returned; got ${JSON.stringify(id)}.`)
}

function signatureFault({ headers, body }: ReceivedRequest, context: VerifyContext): Refusal | undefined {
  const given = headers[HEADER]
  if (given === undefined) return missingSignature(HEADER)
  return timedSignatureFault(parseTimedSignature(given), body, context, TOLERANCE)
}

function subscriptionFault({ body }: ReceivedRequest, subscription: string): Refusal | undefined {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  return credentialsFault('subscription_id in the body', readWord(readMembers(json.value).get('subscription_id')), [
    subscription,
  ])
}

/** Ids are read from the text: they may have more digits than a double can hold. */
const parseEvents: ParseEvents = ({ body }) => {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const members = readMembers(json.value)
  const word = (name: string): string | undefined => readWord(members.get(name))
  const [object, id, aspect, at] = [word('object_type'), word('object_id'), word('aspect_type'), word('event_time')]
  if (object === undefined || id === undefined || aspect === undefined) {
    const what = 'The event has no object_type, object_id or aspect_type.'
    return notUnderstood(what, 'Make sure that only Strava calls this URL.')
  }
  return [
    {
      type: isDeauthorization(object, aspect, members.get('updates')) ? 'athlete.deauthorized' : `${object}.${aspect}`,
      dedupeId:
        at === undefined ? undefined : [object, id, aspect, at, ...hashUpdates(members.get('updates'))].join('/'),
      body: json.value,
      subject: word('owner_id'),
      time: parseUnixSeconds(at),
    },
  ]
}

/** Two changes of one activity within a second differ only in `updates`. */
function hashUpdates(updates: JsonSlice | undefined): readonly string[] {
  return updates === undefined || readMembers(updates).size === 0 ? [] : [hash('sha256', updates, 'base64url')]
}

/** Receivers have seen a deauthorization in two shapes. Strava sends no other deletion of an athlete. */
function isDeauthorization(object: string, aspect: string, updates: JsonSlice | undefined): boolean {
  if (object !== 'athlete') return false
  const authorized = readMembers(updates).get('authorized')
  return aspect === 'delete' || (authorized !== undefined && /^"?false"?$/.test(Buffer.from(authorized).toString()))
}

function sign(input: SignOptions, subscription: string, isSigned: boolean): SignedRequest {
  const [object = 'activity', aspect = 'create'] = (input.type ?? 'activity.create').split('.')
  const seconds = formatSeconds(input.now)
  const example = {
    object_type: object,
    // A notice has no id; only its object and time distinguish two of them.
    object_id: Number.parseInt(input.id.replaceAll(/\D/g, '').slice(0, 12), 10),
    aspect_type: aspect,
    event_time: Number(seconds),
    owner_id: 1,
    subscription_id: Number(subscription),
    updates: {},
  }
  return signJson(input, example, (body): Readonly<Record<string, string>> =>
    isSigned ? { [HEADER]: formatTimedSignature(input.secret, seconds, body) } : {},
  )
}
