// `twilio` verifies SHA-1 signatures over the called URL and the form fields. For other bodies, the URL contains the
// hash of the body.
import { hash } from 'node:crypto'
import { parse, stringify } from 'node:querystring'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { ReceivedRequest, Refusal, Source, SignedRequest, SignOptions } from '../receive/source.ts'
import { parseForm, isForm, valuesByName } from './form-body.ts'
import {
  WRONG_SIGNATURE,
  computeMac,
  equalsConstantTime,
  hasValidMac,
  refusal,
  parseSecrets,
  missingSignature,
  type Secrets,
} from './signature.ts'
import { parseTwilioEvents } from './twilio-events.ts'

export interface TwilioOptions {
  /** The auth token of the account. */
  readonly secret: Secrets
  /** The address as configured at Twilio, without query. Set it behind a proxy that is not in `trustProxy`. */
  readonly url?: string
  /** The response. The default is `<Response></Response>`, which ends a call. */
  readonly twiml?: string
}

const HEADER = 'x-twilio-signature'
const MAC = { algorithm: 'sha1', encoding: 'base64' } as const
const BODY_HASH = 'bodySHA256'

export function twilio(options: TwilioOptions): Source {
  assertKnownOptions(options, ['secret', 'url', 'twiml'], 'twilio: ')
  const url = options.url === undefined ? undefined : assertPublicUrl(options.url)
  return {
    scheme: 'twilio',
    secrets: parseSecrets('twilio', options.secret),
    dedupeFor: '30d',
    methods: ['POST', 'GET'],
    verify: (request, { secrets }) => {
      const given = request.headers[HEADER]
      if (given === undefined) return missingSignature(HEADER)
      const fields = signedFields(request)
      if (typeof fields !== 'string') return fields
      const urls = listSignedUrls(request, url)
      // All are computed, even after a match.
      const fits = urls.filter((one) => hasValidMac([given], [one, fields], secrets, MAC))
      return fits.length > 0 ? undefined : WRONG_SIGNATURE
    },
    events: parseTwilioEvents,
    sign: (input) => sign(input, url),
    answer: {
      status: 200,
      headers: { 'content-type': 'text/xml' },
      body: options.twiml ?? '<Response></Response>',
    },
  }
}

/** `listSignedUrls` lists the URLs that Twilio may have signed: the called one, with variants of port and escaping. It
    tries every variant that Twilio's own package tries. `fixed` is the configured public URL; the query is always that
    of the request. */
function listSignedUrls(
  { url, calledUrl: called }: Pick<ReceivedRequest, 'url' | 'calledUrl'>,
  fixed?: string,
): readonly string[] {
  const written = called ?? url.href
  const asCalled = fixed === undefined ? written : fixed + findQuery(written)
  const spelledAnew = URL.parse(asCalled)?.href ?? asCalled
  const spellings = [asCalled, spelledAnew, rewriteQuery(spelledAnew)]
  return [...new Set(spellings.flatMap((one) => [withoutPort(one), withPort(one)]))]
}

function findQuery(url: string): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start)
}

const AUTHORITY = /^(https?:\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^/?#:]*))(:\d+)?/i

function withoutPort(url: string): string {
  return url.replace(AUTHORITY, '$1')
}

function withPort(url: string): string {
  return url.replace(AUTHORITY, (all: string, host: string, port: string | undefined) =>
    port === undefined ? `${host}${/^https/i.test(host) ? ':443' : ':80'}` : all,
  )
}

/** `rewriteQuery` encodes a query as Node did before it had `URL`: some of Twilio's senders sign that form. */
function rewriteQuery(url: string): string {
  const query = findQuery(url)
  return query.length > 1 ? `${url.slice(0, -query.length)}?${stringify(parse(query.slice(1)))}` : url
}

/** `signedFields` returns the content signed after the URL. Every byte of the body must be in it, or in the hash in
    the URL. */
function signedFields(request: ReceivedRequest): string | Refusal {
  const bodyHash = request.url.searchParams.get(BODY_HASH)
  if (bodyHash !== null) return equalsConstantTime(bodyHash, hash('sha256', request.body, 'hex')) ? '' : WRONG_SIGNATURE
  if (request.body.length === 0) return ''
  if (!isForm(request)) {
    const what = `The body is not a form, and the URL has no ${BODY_HASH}.`
    return refusal(
      'CONTENT_TYPE_WRONG',
      what,
      'Make sure that nothing in between changes the content type or the query.',
    )
  }
  const form = parseForm(request)
  if ('code' in form) return form
  const text = Buffer.from(request.body).toString()
  // The names and values are signed without separators: 'a=b' and 'ab' would have the same signature.
  if (!text.split('&').every((field) => field.includes('='))) return WRONG_SIGNATURE
  return joinFields(form)
}

/** Sorts by name; repeated values of one name appear once. */
function joinFields(form: URLSearchParams): string {
  return [...valuesByName(form)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([name, values]) => [...new Set(values)].toSorted().map((value) => name + value))
    .join('')
}

function assertPublicUrl(url: unknown): string {
  const isGood = typeof url === 'string' && /^https?:\/\/[^?#\s]+$/i.test(url) && URL.canParse(url)
  if (isGood) return url
  throw invalidOption(
    `twilio: url must be the URL set at Twilio, from https:// on, without ? and #; got ${JSON.stringify(url)}.`,
  )
}

function sign(
  { type = 'message.received', data, id, secret, url, headers }: SignOptions,
  publicUrl?: string,
): SignedRequest {
  const [, status = 'received'] = type.split('.')
  const example = new URLSearchParams({
    // The SID identifies a message, and SIDs of Twilio have 32 hexadecimal digits.
    MessageSid: `SM${hash('sha256', id).slice(0, 32)}`,
    SmsStatus: status,
    AccountSid: 'ACtest',
    Body: 'A test.',
  })
  const body = data ?? Buffer.from(example.toString())
  const isJson = body[0] === 0x7b || body[0] === 0x5b
  const called = new URL(url)
  if (isJson) called.searchParams.set(BODY_HASH, hash('sha256', body, 'hex'))
  const address = publicUrl === undefined ? called.href : publicUrl + called.search
  const fields = isJson ? '' : joinFields(new URLSearchParams(Buffer.from(body).toString()))
  return {
    url: called,
    headers: {
      'content-type': isJson ? 'application/json' : 'application/x-www-form-urlencoded',
      ...headers,
      [HEADER]: computeMac(secret, [address, fields], MAC),
      'i-twilio-idempotency-token': id,
    },
    body,
  }
}
