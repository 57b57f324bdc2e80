// `standardWebhooks` receives Standard Webhooks and Svix, their origin: id, time and body are signed with HMAC (v1) or
// ed25519 (v1a).
import {
  createPrivateKey,
  createPublicKey,
  sign as signWithKey,
  verify as isSignedBy,
  type KeyObject,
} from 'node:crypto'
import { SluiceError } from '../errors.ts'
import type { Duration } from '../model/duration.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import type { SignRequest, ReceivedRequest, Source, VerifyContext } from '../receive/source.ts'
import { createNamedEventParser, type NamingOptions } from './event-names.ts'
import {
  WRONG_SIGNATURE,
  computeMac,
  formatSeconds,
  hasValidMac,
  missingSignature,
  parseSecrets,
  parseTolerance,
  refusal,
  signJson,
  timestampFault,
  type Secrets,
} from './signature.ts'

export interface StandardWebhooksOptions extends Omit<NamingOptions, 'id'> {
  /** `whsec_…`, or `whpk_…`, the public key of a sender that signs with ed25519. */
  readonly secret: Secrets
  readonly tolerance?: Duration
}

const SCHEME = 'standardWebhooks'
/** The bound for each key. A check reads the whole body; a sender that rotates its key sends two signatures. */
const PUBLIC_SIGNATURES_MAX = 3
const MAC = { algorithm: 'sha256', encoding: 'base64', prefix: 'v1,' } as const
const PUBLIC_KEY_BYTES = 32
const SECRET = /^(whsec_|whpk_|whsk_)?(.*)$/s
/** 64 bytes in their only encoding: the last character before the padding has no spare bits. */
const PUBLIC_SIGNATURE = /^v1a,[A-Za-z0-9+/]{85}[AQgw]==$/
const BASE64 = /^(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=)?$/i

export function standardWebhooks(options: StandardWebhooksOptions): Source {
  assertKnownOptions(options, ['secret', 'tolerance', 'type', 'subject', 'tenant', 'time'], `${SCHEME}: `)
  const secrets = parseSecrets(SCHEME, options.secret)
  for (const secret of secrets) if (parseKey(secret) === undefined) throw invalidKey(secret)
  const tolerance = parseTolerance(SCHEME, options.tolerance)
  return {
    scheme: SCHEME,
    secrets,
    tolerance,
    verify: (request, context) => {
      const { family, id, time, signature } = readSignedNames(request)
      if (signature === undefined) return missingSignature(`${family}-signature`)
      if (id === undefined) return missingSignature(`${family}-id`)
      if (time === undefined) return timestampFault('', context.now, tolerance)
      // With a dot in the id, the boundary between id and time would be ambiguous.
      if (id.includes('.'))
        return refusal('SIGNATURE_WRONG', `${family}-id has a dot.`, 'Sign the request as the scheme requires.')
      return hasValidSignature(signature.split(' '), [`${id}.${time}.`, request.body], context)
        ? timestampFault(time, context.now, tolerance)
        : WRONG_SIGNATURE
    },
    sign,
    events: createNamedEventParser(SCHEME, {
      time: 'timestamp',
      ...options,
      id: (request) => readSignedNames(request).id,
    }),
  }
}

interface SignedNames {
  readonly family: string
  readonly id: string | undefined
  readonly time: string | undefined
  readonly signature: string | undefined
}

/** `readSignedNames` reads headers of one family only: the other family is not verified. */
function readSignedNames({ headers }: Pick<ReceivedRequest, 'headers'>): SignedNames {
  const isSvix = headers['webhook-signature'] === undefined && headers['svix-signature'] !== undefined
  const family = isSvix ? 'svix' : 'webhook'
  const [id, time, signature] = ['id', 'timestamp', 'signature'].map((name) => headers[`${family}-${name}`])
  return { family, id, time, signature }
}

function hasValidSignature(
  values: readonly string[],
  [head, body]: readonly [head: string, body: Uint8Array],
  { secrets }: VerifyContext,
): boolean {
  const keys = secrets.map(parseKey).filter((key) => key !== undefined)
  const byMac = hasValidMac(
    values,
    // A text is shown in the autopsy of a refused request; bytes count as the body.
    [head, body],
    keys.filter((key) => key instanceof Uint8Array),
    MAC,
  )
  const signatures = values.filter((one) => PUBLIC_SIGNATURE.test(one)).slice(0, PUBLIC_SIGNATURES_MAX)
  if (byMac || signatures.length === 0) return byMac
  const content = Buffer.concat([Buffer.from(head), body])
  return keys.some(
    (key) =>
      !(key instanceof Uint8Array) &&
      signatures.some((one) => isSignedBy(null, content, key, Buffer.from(one.slice(4), 'base64'))),
  )
}

/** `parseKey` returns undefined if the text is no secret of this scheme. */
function parseKey(secret: string): Uint8Array | KeyObject | undefined {
  const [, kind, text = ''] = SECRET.exec(secret.trim()) ?? []
  if (kind === 'whsk_' || text === '' || !BASE64.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  if (kind !== 'whpk_') return bytes
  if (bytes.length !== PUBLIC_KEY_BYTES) return undefined
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })
}

function invalidKey(secret: string): SluiceError {
  const why = secret.startsWith('whsk_')
    ? 'secret must be a public key (whpk_…); got the private key of the sender (whsk_…). Pass its public key.'
    : 'secret must be base64 after whsec_ or whpk_; got other text. Copy it completely, as the sender shows it.'
  return invalidOption(`${SCHEME}: ${why}`)
}

/** `sign` uses HMAC, or the private key of the sender if that is given. */
const sign: SignRequest = (input) => {
  const [id, seconds] = [`msg_${input.id}`, formatSeconds(input.now)]
  const [, kind, text = ''] = SECRET.exec(input.secret.trim()) ?? []
  if (kind === 'whpk_')
    return 'The source has only the public key of its sender: give the private one, --secret=whsk_….'
  const key = Buffer.from(text, 'base64')
  const timestamp = new Date(input.now).toISOString()
  return signJson(input, { type: input.type ?? 'test', timestamp, data: { id: input.id } }, (body) => {
    const parts = [Buffer.from(`${id}.${seconds}.`), body]
    const signature =
      kind === 'whsk_'
        ? `v1a,${signWithKey(null, Buffer.concat(parts), parsePrivateKey(key)).toString('base64')}`
        : computeMac(key, parts, MAC)
    return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signature }
  })
}

/** The private key, followed by the public key. */
function parsePrivateKey(bytes: Buffer): KeyObject {
  const d = bytes.subarray(0, PUBLIC_KEY_BYTES).toString('base64url')
  const x = bytes.subarray(PUBLIC_KEY_BYTES).toString('base64url')
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' })
}
