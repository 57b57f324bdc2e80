// CloudEvents 1.0 over HTTP, in its three modes, with the handshake by which a sender asks whether it may send.
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { Handshake, HandshakeResult, ReceivedRequest, Refusal, Source, SourceEvent } from '../receive/source.ts'
import { binaryEvent, structuredEvent } from './cloud-event-attributes.ts'
import { authorizationOf, credentialsFault } from './credentials.ts'
import { elementsOf, isWrittenList, writtenOf } from './json-text.ts'
import { refusal, secretsOf } from './signature.ts'

/** What a source of another kind proves itself by. */
type Proof = Pick<Source, 'secrets' | 'verify' | 'dedupeFor' | 'tolerance' | 'sender'>

export interface CloudEventsOptions {
  /** Sent as `Authorization: Bearer …` or, which the webhook standard asks for as well, as `access_token` of the query. */
  readonly token?: string | readonly string[]
  /** Or the way of another source, such as `hmac({ … })` or `basic({ … })`; or 'none', in so many words. */
  readonly verify?: 'none' | Proof
  /** Names that the handshake is granted to, as 'eventgrid.azure.net'. Left out, no handshake is granted. */
  readonly origins?: '*' | readonly string[]
  /** Requests a minute that the handshake grants at most. */
  readonly rate?: number
  /** The extension attribute that names the tenant. */
  readonly tenant?: string
}

const KNOWN: ReadonlySet<string> = new Set<keyof CloudEventsOptions>(['token', 'verify', 'origins', 'rate', 'tenant'])
const BATCH = 'application/cloudevents-batch'
const STRUCTURED = 'application/cloudevents'

export function cloudEvents(options: CloudEventsOptions): Source {
  onlyKnown(options, KNOWN, 'cloudEvents: ')
  const proof = proofOf(options)
  const tenant = tenantOf(options.tenant)
  return {
    scheme: 'cloud-events',
    ...proof,
    dedupeFor: proof.dedupeFor ?? '30d',
    handshake: handshakeOf(originsOf(options.origins), rateOf(options.rate)),
    events: (request) => eventsOf(request, tenant),
    answer: { status: 202 },
  }
}

function proofOf(options: CloudEventsOptions): Proof {
  if ('token' in options === 'verify' in options) {
    throw new SluiceError(
      'CONFIG_INVALID',
      "cloudEvents: give either token or verify; verify: 'none' takes everything.",
    )
  }
  if ('token' in options) {
    return {
      secrets: secretsOf('cloudEvents', options.token, 'token'),
      verify: (request, { secrets }) => credentialsFault('bearer token', tokenOf(request), secrets),
      sender: { proof: { kind: 'bearer' } },
    }
  }
  const { verify } = options
  if (verify === 'none') return { secrets: [], verify, sender: { proof: { kind: 'none' } } }
  if (typeof verify !== 'object' || verify === null || verify.secrets === 'by-handshake') {
    throw new SluiceError('CONFIG_INVALID', "cloudEvents: verify is a source such as hmac({ … }), or 'none'.")
  }
  const { secrets, dedupeFor, tolerance, sender } = verify
  return {
    secrets,
    verify: verify.verify,
    ...(dedupeFor !== undefined && { dedupeFor }),
    ...(tolerance !== undefined && { tolerance }),
    ...(sender !== undefined && { sender }),
  }
}

function tokenOf({ headers, url }: ReceivedRequest): string | undefined {
  if (headers['authorization'] !== undefined) return authorizationOf(headers, 'bearer')
  return url.searchParams.get('access_token') ?? undefined
}

function originsOf(origins: unknown): ReadonlySet<string> | '*' {
  if (origins === undefined) return new Set()
  if (origins === '*') return origins
  if (Array.isArray(origins) && origins.every(isName)) return new Set(origins.map((one) => one.toLowerCase()))
  throw new SluiceError('CONFIG_INVALID', "cloudEvents: origins is a list of host names, or '*'.")
}

function isName(one: unknown): one is string {
  return typeof one === 'string' && /^[a-z0-9.-]{1,253}$/i.test(one)
}

function tenantOf(name: unknown): string | undefined {
  if (name === undefined || (typeof name === 'string' && /^[a-z0-9]+$/.test(name))) return name
  throw new SluiceError('CONFIG_INVALID', 'cloudEvents: tenant is the name of an attribute: small letters and digits.')
}

function rateOf(rate: unknown): number | undefined {
  if (rate === undefined || (typeof rate === 'number' && Number.isSafeInteger(rate) && rate > 0)) return rate
  throw new SluiceError('CONFIG_INVALID', 'cloudEvents: rate is a whole number of requests a minute.')
}

/** Consent is in the headers, not in the status. */
function handshakeOf(origins: ReadonlySet<string> | '*', rate: number | undefined): Handshake {
  const granted = ({ headers }: ReceivedRequest): HandshakeResult => {
    const origin = headers['webhook-request-origin']?.trim().toLowerCase() ?? ''
    if (origin === '' || (origins !== '*' && !origins.has(origin))) {
      const what = 'The origin that asks whether it may send is not among those of the source.'
      const fix = 'Put its name into origins if it is to send here; it is in the webhook-request-origin header.'
      return { kind: 'refused', refusal: refusal('HANDSHAKE_REFUSED', what, fix) }
    }
    const asked = /^[1-9]\d{0,9}$/.exec(headers['webhook-request-rate']?.trim() ?? '')?.[0]
    const allowed = rate === undefined ? '*' : String(Math.min(rate, Number(asked ?? rate)))
    const answer = {
      status: 200,
      headers: {
        allow: 'POST',
        'webhook-allowed-origin': origins === '*' ? '*' : origin,
        'webhook-allowed-rate': allowed,
      },
    }
    return { kind: 'answer', answer }
  }
  return { verified: false, answer: (request) => (request.method === 'OPTIONS' ? granted(request) : undefined) }
}

function eventsOf(request: ReceivedRequest, tenant: string | undefined): readonly SourceEvent[] | Refusal {
  const { mode, isRead } = modeOf(request.headers['content-type'] ?? '')
  if (!isRead) {
    const what = 'CloudEvents of this content type are not understood.'
    return refusal('CONTENT_TYPE_WRONG', what, 'Send application/cloudevents+json in UTF-8, or the binary mode.')
  }
  if (mode === 'binary') return alone(binaryEvent(request, tenant))
  const json = writtenOf(request.body)
  if ('code' in json) return json
  if (mode === 'structured') return alone(structuredEvent(json.value, tenant))
  if (!isWrittenList(json.value)) {
    return refusal('BODY_NOT_UNDERSTOOD', 'A batch is a list of events.', 'Look at the body that was sent.')
  }
  const events: SourceEvent[] = []
  for (const element of elementsOf(json.value)) {
    const event = structuredEvent(element, tenant)
    if ('code' in event) return event
    events.push(event)
  }
  return events
}

function alone(event: SourceEvent | Refusal): readonly SourceEvent[] | Refusal {
  return 'code' in event ? event : [event]
}

/** The batch begins with the same letters as the single event, so it is looked for first. */
function modeOf(contentType: string): { readonly mode: 'batch' | 'structured' | 'binary'; readonly isRead: boolean } {
  const [media = '', ...parameters] = contentType
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const charset = parameters.find((part) => part.startsWith('charset='))
  const isText = charset === undefined || /^charset="?utf-?8"?$/.test(charset)
  if (media.startsWith(BATCH)) return { mode: 'batch', isRead: isText && media === `${BATCH}+json` }
  if (media.startsWith(STRUCTURED)) return { mode: 'structured', isRead: isText && media === `${STRUCTURED}+json` }
  return { mode: 'binary', isRead: true }
}
