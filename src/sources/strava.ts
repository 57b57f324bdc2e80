// Strava: a notice that something changed, to be fetched. Whether it is signed is disputed, so the subscription is always checked.
import { hash } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source, SourceEvent, VerifyContext } from '../receive/source.ts'
import { credentialsFault } from './credentials.ts'
import { hubHandshake } from './hub-handshake.ts'
import { instantOfSeconds } from './instant.ts'
import { membersOf, wordIn, writtenOf, type Written } from './json-text.ts'
import { FORGED, isSigned, refusal, secretsOf, timeFault, TOLERANCE, unsigned } from './signature.ts'

export interface StravaOptions {
  /** What was given to Strava when the subscription was made. */
  readonly verifyToken: string | readonly string[]
  /** What Strava answered then. */
  readonly subscriptionId: number | string
  /** Given: every event must carry its signature by it. */
  readonly secret?: string | readonly string[]
}

const KNOWN: ReadonlySet<string> = new Set<keyof StravaOptions>(['verifyToken', 'subscriptionId', 'secret'])
const HEADER = 'x-strava-signature'
const MAC = { algorithm: 'sha256', encoding: 'hex' } as const

export function strava(options: StravaOptions): Source {
  onlyKnown(options, KNOWN, 'strava: ')
  const verifyTokens = secretsOf('strava', options.verifyToken, 'verifyToken')
  const subscription = subscriptionOf(options.subscriptionId)
  // An environment variable that is not set must not turn the signature off.
  const isSignedToo = 'secret' in options
  return {
    scheme: 'strava',
    secrets: isSignedToo ? secretsOf('strava', options.secret) : [subscription],
    dedupeFor: isSignedToo ? '7d' : '30d',
    ...(isSignedToo && { tolerance: TOLERANCE }),
    handshake: hubHandshake(verifyTokens, (challenge) => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
      body: JSON.stringify({ 'hub.challenge': challenge }),
    })),
    verify: (request, context) =>
      (isSignedToo ? signatureFault(request, context) : undefined) ?? subscriptionFault(request, subscription),
    sender: { subscription: { id: subscription, isSigned: isSignedToo } },
    events: eventsOf,
    // Anything but 200 is sent again.
    answer: { status: 200 },
  }
}

function subscriptionOf(id: unknown): string {
  const text = typeof id === 'number' && Number.isSafeInteger(id) ? String(id) : id
  if (typeof text === 'string' && /^\d{1,20}$/.test(text)) return text
  throw new SluiceError(
    'CONFIG_INVALID',
    `strava: subscriptionId is ${JSON.stringify(id)}, not the number that Strava gave.`,
  )
}

/** `t=<seconds>,v1=<hex>` over `<seconds>.<body>`. */
function signatureFault({ headers, body }: ReceivedRequest, { now, secrets }: VerifyContext): Refusal | undefined {
  const given = headers[HEADER]
  if (given === undefined) return unsigned(HEADER)
  const parts = given.split(',').map((part) => part.trim())
  const valuesOf = (name: string): readonly string[] =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1))
  const [seconds = ''] = valuesOf('t')
  if (!isSigned(valuesOf('v1'), [`${seconds}.`, body], secrets, MAC)) return FORGED
  return timeFault(seconds, now, TOLERANCE)
}

function subscriptionFault({ body }: ReceivedRequest, subscription: string): Refusal | undefined {
  const json = writtenOf(body)
  if ('code' in json) return json
  return credentialsFault('subscription_id in the body', wordIn(membersOf(json.value).get('subscription_id')), [
    subscription,
  ])
}

/** Ids are taken from the text: they may be longer than a number holds. */
function eventsOf({ body }: ReceivedRequest): readonly SourceEvent[] | Refusal {
  const json = writtenOf(body)
  if ('code' in json) return json
  const members = membersOf(json.value)
  const word = (name: string): string | undefined => wordIn(members.get(name))
  const [object, id, aspect, at] = [word('object_type'), word('object_id'), word('aspect_type'), word('event_time')]
  if (object === undefined || id === undefined || aspect === undefined) {
    const what = 'The event has no object_type, object_id or aspect_type.'
    return refusal('BODY_NOT_UNDERSTOOD', what, 'Only Strava is to call this address.')
  }
  const [subject, time] = [word('owner_id'), instantOfSeconds(at)]
  return [
    {
      type: isDeauthorization(object, aspect, members.get('updates')) ? 'athlete.deauthorized' : `${object}.${aspect}`,
      dedupeId: at === undefined ? undefined : [object, id, aspect, at, ...changed(members.get('updates'))].join('/'),
      body: json.value,
      ...(subject !== undefined && { subject }),
      ...(time !== undefined && { time }),
    },
  ]
}

/** Two changes of one activity within a second differ in nothing else. */
function changed(updates: Written | undefined): readonly string[] {
  return updates === undefined || membersOf(updates).size === 0 ? [] : [hash('sha256', updates, 'base64url')]
}

/** Receivers have seen it in two shapes; an athlete is never deleted otherwise. */
function isDeauthorization(object: string, aspect: string, updates: Written | undefined): boolean {
  if (object !== 'athlete') return false
  const authorized = membersOf(updates).get('authorized')
  return aspect === 'delete' || (authorized !== undefined && /^"?false"?$/.test(Buffer.from(authorized).toString()))
}
