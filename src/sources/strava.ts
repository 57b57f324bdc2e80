// `strava` receives notices of changes, which the app then fetches. Sources disagree on whether Strava signs them, so
// the subscription id is always checked.
import { hash } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type {
  ReceivedRequest,
  Refusal,
  Source,
  SourceEvent,
  VerifyContext,
  SignedRequest,
  SignOptions,
} from '../receive/source.ts'
import { credentialsFault } from './credentials.ts'
import { createHubHandshake } from './hub-handshake.ts'
import { parseUnixSeconds } from './instant.ts'
import { readMembers, readWord, parseJsonSlice, type JsonSlice } from './json-slices.ts'
import {
  WRONG_SIGNATURE,
  hasValidMac,
  refusal,
  parseSecrets,
  timestampFault,
  TOLERANCE,
  missingSignature,
} from './signature.ts'
import { computeMac, formatSeconds, signJson } from './sign.ts'

export interface StravaOptions {
  /** The token that was passed to Strava when the subscription was created. */
  readonly verifyToken: string | readonly string[]
  /** The id that Strava returned for the subscription. */
  readonly subscriptionId: number | string
  /** If set, every event must carry a signature by it. */
  readonly secret?: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof StravaOptions>(['verifyToken', 'subscriptionId', 'secret'])
const HEADER = 'x-strava-signature'
const MAC = { algorithm: 'sha256', encoding: 'hex' } as const

export function strava(options: StravaOptions): Source {
  assertKnownOptions(options, KNOWN, 'strava: ')
  const verifyTokens = parseSecrets('strava', options.verifyToken, 'verifyToken')
  const subscription = parseSubscriptionId(options.subscriptionId)
  // An unset environment variable must not turn the signature check off.
  const isSignedToo = 'secret' in options
  return {
    scheme: 'strava',
    secrets: isSignedToo ? parseSecrets('strava', options.secret) : [subscription],
    dedupeFor: isSignedToo ? '7d' : '30d',
    ...(isSignedToo && { tolerance: TOLERANCE }),
    handshake: createHubHandshake(verifyTokens, (challenge) => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
      body: JSON.stringify({ 'hub.challenge': challenge }),
    })),
    verify: (request, context) =>
      (isSignedToo ? signatureFault(request, context) : undefined) ?? subscriptionFault(request, subscription),
    events: parseEvents,
    sign: (asked) => sign(asked, subscription, isSignedToo),
    // Strava sends again after any status but 200.
    answer: { status: 200 },
  }
}

function parseSubscriptionId(id: unknown): string {
  const text = typeof id === 'number' && Number.isSafeInteger(id) ? String(id) : id
  if (typeof text === 'string' && /^\d{1,20}$/.test(text)) return text
  throw new SluiceError(
    'CONFIG_INVALID',
    `strava: subscriptionId must be the number that Strava returned; got ${JSON.stringify(id)}.`,
  )
}

/** The header is `t=<seconds>,v1=<hex>`; the signature covers `<seconds>.<body>`. */
function signatureFault({ headers, body }: ReceivedRequest, { now, secrets }: VerifyContext): Refusal | undefined {
  const given = headers[HEADER]
  if (given === undefined) return missingSignature(HEADER)
  const parts = given.split(',').map((part) => part.trim())
  const valuesOf = (name: string): readonly string[] =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1))
  const [seconds = ''] = valuesOf('t')
  if (!hasValidMac(valuesOf('v1'), [`${seconds}.`, body], secrets, MAC)) return WRONG_SIGNATURE
  return timestampFault(seconds, now, TOLERANCE)
}

function subscriptionFault({ body }: ReceivedRequest, subscription: string): Refusal | undefined {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  return credentialsFault('subscription_id in the body', readWord(readMembers(json.value).get('subscription_id')), [
    subscription,
  ])
}

/** Ids are read from the text: they may have more digits than a double can hold. */
function parseEvents({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = parseJsonSlice(body)
  if ('code' in json) return json
  const members = readMembers(json.value)
  const word = (name: string): string | undefined => readWord(members.get(name))
  const [object, id, aspect, at] = [word('object_type'), word('object_id'), word('aspect_type'), word('event_time')]
  if (object === undefined || id === undefined || aspect === undefined) {
    const what = 'The event has no object_type, object_id or aspect_type.'
    return refusal('BODY_NOT_UNDERSTOOD', what, 'Make sure that only Strava calls this URL.')
  }
  const [subject, time] = [word('owner_id'), parseUnixSeconds(at)]
  return [
    {
      type: isDeauthorization(object, aspect, members.get('updates')) ? 'athlete.deauthorized' : `${object}.${aspect}`,
      dedupeId:
        at === undefined ? undefined : [object, id, aspect, at, ...hashUpdates(members.get('updates'))].join('/'),
      body: json.value,
      ...(subject !== undefined && { subject }),
      ...(time !== undefined && { time }),
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

function sign(asked: SignOptions, subscription: string, isSigned: boolean): SignedRequest {
  const [object = 'activity', aspect = 'create'] = (asked.type ?? 'activity.create').split('.')
  const seconds = formatSeconds(asked.now)
  const example = {
    object_type: object,
    // A notice has no id; only its object and time distinguish two of them.
    object_id: Number.parseInt(asked.id.replaceAll(/\D/g, '').slice(0, 12), 10),
    aspect_type: aspect,
    event_time: Number(seconds),
    owner_id: 1,
    subscription_id: Number(subscription),
    updates: {},
  }
  return signJson(asked, example, (body): Readonly<Record<string, string>> =>
    isSigned ? { [HEADER]: `t=${seconds},v1=${computeMac(asked.secret, [`${seconds}.`, body], MAC)}` } : {},
  )
}
