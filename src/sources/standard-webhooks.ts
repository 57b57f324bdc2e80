// Standard Webhooks, and Svix, where it comes from: id, time and body signed, by HMAC (v1) or by ed25519 (v1a).
import { createPublicKey, verify as isSignedBy, type KeyObject } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import type { Duration } from '../model/duration.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Source, VerifyContext } from '../receive/source.ts'
import { eventsNamedBy, type NamingOptions } from './named-by.ts'
import { FORGED, isSigned, refusal, secretsOf, timeFault, toleranceOf, unsigned } from './signature.ts'

export interface StandardWebhooksOptions extends Omit<NamingOptions, 'id'> {
  /** `whsec_…`, or `whpk_…`, the public key of a sender that signs by ed25519. */
  readonly secret: string | readonly string[]
  readonly tolerance?: Duration
}

const KNOWN: ReadonlySet<string> = new Set<keyof StandardWebhooksOptions>([
  'secret',
  'tolerance',
  'type',
  'subject',
  'tenant',
  'time',
])
const SCHEME = 'standardWebhooks'
/** Each costs a computation of its own. */
const PUBLIC_SIGNATURES_MAX = 10
const MAC = { algorithm: 'sha256', encoding: 'base64', prefix: 'v1,' } as const
const PUBLIC_KEY_BYTES = 32
/** 64 bytes, and in one way only: the last letter before the padding has no bits to spare. */
const PUBLIC_SIGNATURE = /^v1a,[A-Za-z0-9+/]{85}[AQgw]==$/
const BASE64 = /^(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=)?$/i

export function standardWebhooks(options: StandardWebhooksOptions): Source {
  onlyKnown(options, KNOWN, `${SCHEME}: `)
  const secrets = secretsOf(SCHEME, options.secret)
  for (const secret of secrets) if (keyOf(secret) === undefined) throw noKey(secret)
  const tolerance = toleranceOf(SCHEME, options.tolerance)
  return {
    scheme: SCHEME,
    secrets,
    tolerance,
    verify: (request, context) => {
      const { family, id, time, signature } = signedBy(request)
      if (signature === undefined) return unsigned(`${family}-signature`)
      if (id === undefined) return unsigned(`${family}-id`)
      if (time === undefined) return timeFault('', context.now, tolerance)
      // A dot in the id would leave open where it ends and the time begins.
      if (id.includes('.')) return refusal('SIGNATURE_WRONG', `${family}-id has a dot.`, 'Send it as the scheme says.')
      const parts = [Buffer.from(`${id}.${time}.`), request.body]
      return isGenuine(signature.split(' '), parts, context) ? timeFault(time, context.now, tolerance) : FORGED
    },
    events: eventsNamedBy(SCHEME, { time: 'timestamp', ...options, id: (request) => signedBy(request).id }),
  }
}

interface Signed {
  readonly family: string
  readonly id: string | undefined
  readonly time: string | undefined
  readonly signature: string | undefined
}

/** Names of one family only: what is in the other one is not proven. */
function signedBy({ headers }: Pick<ReceivedRequest, 'headers'>): Signed {
  const isSvix = headers['webhook-signature'] === undefined && headers['svix-signature'] !== undefined
  const family = isSvix ? 'svix' : 'webhook'
  const [id, time, signature] = ['id', 'timestamp', 'signature'].map((name) => headers[`${family}-${name}`])
  return { family, id, time, signature }
}

function isGenuine(given: readonly string[], parts: readonly Uint8Array[], { secrets }: VerifyContext): boolean {
  const keys = secrets.map(keyOf).filter((key) => key !== undefined)
  const byMac = isSigned(
    given,
    parts,
    keys.filter((key) => key instanceof Uint8Array),
    MAC,
  )
  const signatures = given.filter((one) => PUBLIC_SIGNATURE.test(one)).slice(0, PUBLIC_SIGNATURES_MAX)
  const byKey = keys.some(
    (key) =>
      !(key instanceof Uint8Array) &&
      signatures.some((one) => isSignedBy(null, Buffer.concat(parts), key, Buffer.from(one.slice(4), 'base64'))),
  )
  return byMac || byKey
}

/** Undefined if it is no secret of this scheme. */
function keyOf(secret: string): Uint8Array | KeyObject | undefined {
  const [, kind, text = ''] = /^(whsec_|whpk_|whsk_)?(.*)$/s.exec(secret.trim()) ?? []
  if (kind === 'whsk_' || text === '' || !BASE64.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  if (kind !== 'whpk_') return bytes
  if (bytes.length !== PUBLIC_KEY_BYTES) return undefined
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })
}

function noKey(secret: string): SluiceError {
  const why = secret.startsWith('whsk_')
    ? 'a secret begins with whsk_: that is the private key of the sending side; give its public one, whpk_….'
    : 'a secret is no base64 after whsec_ or whpk_; copy it whole, as the sending side shows it.'
  return new SluiceError('CONFIG_INVALID', `${SCHEME}: ${why}`)
}
