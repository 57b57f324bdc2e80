// `cloudEvents` receives CloudEvents 1.0 over HTTP in all three modes, and answers the handshake in which a sender asks
// for permission.
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type {
  ParsedEvents,
  Handshake,
  HandshakeResult,
  ReceivedRequest,
  Refusal,
  Source,
  SourceEvent,
  SignOptions,
} from '../receive/source.ts'
import { parseBinaryEvent, parseStructuredEvent } from './cloud-event-attributes.ts'
import { parseAuthorization, credentialsFault } from './credentials.ts'
import { refuseHandshake } from './handshake.ts'
import { readElements, isArraySlice, parseJsonSlice } from './json-slices.ts'
import { notUnderstood, parseSecrets, refusal, signJson, type Secrets } from './signature.ts'

/** The part of another source that verifies requests. */
type SourceProof = Pick<Source, 'secrets' | 'verify' | 'dedupeFor' | 'tolerance' | 'sign'>

export interface CloudEventsOptions {
  /** Sent as `Authorization: Bearer …` or, as the webhook standard also requires, as `access_token` in the query. */
  readonly token?: Secrets
  /** Instead of `token`: another source that verifies, e.g. `hmac({ … })` or `basic({ … })`; or 'none'. */
  readonly verify?: 'none' | SourceProof
  /** The origins that the handshake allows, e.g. 'eventgrid.azure.net'. Without this option, no handshake succeeds. */
  readonly origins?: '*' | readonly string[]
  /** The most requests per minute that the handshake grants. */
  readonly rate?: number
  /** The extension attribute that holds the tenant. */
  readonly tenant?: string
}

const BATCH = 'application/cloudevents-batch'
const STRUCTURED = 'application/cloudevents'

export function cloudEvents(options: CloudEventsOptions): Source {
  assertKnownOptions(options, ['token', 'verify', 'origins', 'rate', 'tenant'], 'cloudEvents: ')
  const proof = parseProof(options)
  const tenant = parseTenant(options.tenant)
  return {
    scheme: 'cloud-events',
    ...proof,
    dedupeFor: proof.dedupeFor ?? '30d',
    handshake: createHandshake(parseOrigins(options.origins), parseRate(options.rate)),
    events: (request) => parseCloudEvents(request, tenant),
    answer: { status: 202 },
  }
}

function parseProof(options: CloudEventsOptions): SourceProof {
  if ('token' in options === 'verify' in options) {
    throw invalidOption("cloudEvents: set either token or verify; verify: 'none' accepts every request.")
  }
  if ('token' in options) {
    return {
      secrets: parseSecrets('cloudEvents', options.token, 'token'),
      verify: (request, { secrets }) => credentialsFault('bearer token', findToken(request), secrets),
      sign: (input) => signJson(toBinaryEvent(input), {}, () => ({ authorization: `Bearer ${input.secret}` })),
    }
  }
  const { verify } = options
  if (verify === 'none') return { secrets: [], verify, sign: (input) => signJson(toBinaryEvent(input), {}, () => ({})) }
  if (typeof verify !== 'object' || verify === null || verify.secrets === 'by-handshake') {
    throw invalidOption("cloudEvents: verify must be a source such as hmac({ … }), or 'none'.")
  }
  const { secrets, dedupeFor, tolerance, sign } = verify
  const signEvent: SourceProof['sign'] = sign && ((input) => sign(toBinaryEvent(input)))
  return { secrets, verify: verify.verify, dedupeFor, tolerance, sign: signEvent }
}

/** `toBinaryEvent` adds an example of the binary mode, with the attributes in headers. */
function toBinaryEvent(input: SignOptions): SignOptions {
  const headers = {
    'ce-specversion': '1.0',
    'ce-id': input.id,
    'ce-source': '/sluice/send',
    'ce-type': input.type ?? 'test',
    'ce-time': new Date(input.now).toISOString(),
  }
  return { ...input, headers, data: input.data ?? Buffer.from(JSON.stringify({ id: input.id })) }
}

function findToken({ headers, url }: ReceivedRequest): string | undefined {
  if (headers['authorization'] !== undefined) return parseAuthorization(headers, 'bearer')
  return url.searchParams.get('access_token') ?? undefined
}

function parseOrigins(origins: unknown): ReadonlySet<string> | '*' {
  if (origins === undefined) return new Set()
  if (origins === '*') return origins
  if (Array.isArray(origins) && origins.every(isHostName)) return new Set(origins.map((one) => one.toLowerCase()))
  throw invalidOption("cloudEvents: origins must be a list of host names, or '*'.")
}

function isHostName(one: unknown): one is string {
  return typeof one === 'string' && /^[a-z0-9.-]{1,253}$/i.test(one)
}

function parseTenant(name: unknown): string | undefined {
  if (name === undefined || (typeof name === 'string' && /^[a-z0-9]+$/.test(name))) return name
  throw invalidOption('cloudEvents: tenant must be an attribute name of lower-case letters and digits.')
}

function parseRate(rate: unknown): number | undefined {
  if (rate === undefined || (typeof rate === 'number' && Number.isSafeInteger(rate) && rate > 0)) return rate
  throw invalidOption('cloudEvents: rate must be a whole number of requests per minute, from 1.')
}

/** `createHandshake` gives consent in the headers, not in the status. */
function createHandshake(origins: ReadonlySet<string> | '*', rate: number | undefined): Handshake {
  const granted = ({ headers }: ReceivedRequest): HandshakeResult => {
    const origin = headers['webhook-request-origin']?.trim().toLowerCase() ?? ''
    if (origin === '' || (origins !== '*' && !origins.has(origin))) {
      const what = 'The origin is not allowed to send to this source.'
      const fix = 'To allow it, add the webhook-request-origin header of the request to origins.'
      return refuseHandshake(what, fix)
    }
    const requested = /^[1-9]\d{0,9}$/.exec(headers['webhook-request-rate']?.trim() ?? '')?.[0]
    const allowed = rate === undefined ? '*' : String(Math.min(rate, Number(requested ?? rate)))
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

/** `parseCloudEvents` reads the events of a request in any of the three modes. `tenant` is the attribute that holds the tenant. */
export function parseCloudEvents(request: ReceivedRequest, tenant: string | undefined): ParsedEvents {
  const { mode, isRead } = parseMode(request.headers['content-type'] ?? '')
  if (!isRead) {
    const what = 'CloudEvents with this content type are not supported.'
    return refusal('CONTENT_TYPE_WRONG', what, 'Send application/cloudevents+json in UTF-8, or the binary mode.')
  }
  if (mode === 'binary') return toList(parseBinaryEvent(request, tenant))
  const json = parseJsonSlice(request.body)
  if ('code' in json) return json
  if (mode === 'structured') return toList(parseStructuredEvent(json.value, tenant))
  if (!isArraySlice(json.value)) {
    return notUnderstood('A batch must be a list of events.', 'Check the body that was sent.')
  }
  const events: SourceEvent[] = []
  for (const element of readElements(json.value)) {
    const event = parseStructuredEvent(element, tenant)
    if ('code' in event) return event
    events.push(event)
  }
  return events
}

function toList(event: SourceEvent | Refusal): ParsedEvents {
  return 'code' in event ? event : [event]
}

/** The content type of a batch begins with that of a single event, so the batch is tested first. */
function parseMode(contentType: string): {
  readonly mode: 'batch' | 'structured' | 'binary'
  readonly isRead: boolean
} {
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
