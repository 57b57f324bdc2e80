// `createSignatureHeaders` makes the headers that prove to a subscriber who sent a batch (D1).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { headersFault, type HeaderMap } from './http/headers.ts'
import { keyBytes, secretFault } from './secrets.ts'

export type Signing =
  /** Standard Webhooks: id, time and body, with one signature per active secret. */
  | { readonly kind: 'standard' }
  /** An HMAC of the body. During a rotation `header` has the older secret's, and `<header>-next` the newer one's. */
  | {
      readonly kind: 'hmac'
      readonly header: string
      readonly encoding: 'hex' | 'base64'
      readonly prefix?: string
    }
  /** The secret itself as a bearer token, without a signature. During a rotation, the older secret. */
  | { readonly kind: 'bearer' }

export interface SigningInput {
  /** The same for all attempts. */
  readonly id: string
  /** The time of this attempt, in milliseconds. */
  readonly at: number
  readonly body: Uint8Array
  /** All active secrets, newest first; at least one. */
  readonly secrets: readonly string[]
}

/** No dots: the specification does not define where an id with a dot ends. */
const ID = /^[A-Za-z0-9_-]{1,200}$/
const TOKEN = /^[\x21-\x7e]+$/
const ENCODINGS: ReadonlySet<string> = new Set(['hex', 'base64'])
const OPTIONS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['standard', ['kind']],
  ['hmac', ['kind', 'header', 'encoding', 'prefix']],
  ['bearer', ['kind']],
])

export function createSignatureHeaders(signing: Signing, { id, at, body, secrets }: SigningInput): HeaderMap {
  const newest = secrets[0]
  // A header with room for one secret has the oldest one, which the other side surely knows, until it ends.
  const oldest = secrets.at(-1)
  if (newest === undefined || oldest === undefined) throw new Error('There is no secret to sign with.')
  switch (signing.kind) {
    case 'standard': {
      if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} cannot be signed as an id.`)
      const time = String(Math.floor(at / 1_000))
      const signatures = secrets.map((secret) => `v1,${computeMac(secret, [`${id}.${time}.`, body], 'base64')}`)
      return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signatures.join(' ') }
    }
    case 'hmac': {
      const signed = (secret: string): string =>
        `${signing.prefix ?? ''}${computeMac(secret, [body], signing.encoding)}`
      const next = newest === oldest ? {} : { [`${signing.header}-next`]: signed(newest) }
      return { 'webhook-id': id, [signing.header]: signed(oldest), ...next }
    }
    case 'bearer':
      return { 'webhook-id': id, authorization: `Bearer ${oldest}` }
    default:
      throw unknownSigning(signing)
  }
}

/** `signingFault` checks a signing at runtime, because JavaScript callers have no types. */
export function signingFault(signing: Signing): string | undefined {
  const known = OPTIONS.get(signing?.kind)
  if (known === undefined) return `Its kind must be one of ${[...OPTIONS.keys()].join(', ')}.`
  const unknown = Object.keys(signing).find((option) => !known.includes(option))
  if (unknown !== undefined) return `${unknown} is not an option of it; its options are ${known.join(', ')}.`
  if (signing.kind !== 'hmac') return undefined
  const { header, encoding, prefix = '' } = signing
  if (!ENCODINGS.has(encoding)) return `Its encoding must be one of ${[...ENCODINGS].join(', ')}.`
  return typeof header === 'string' ? headersFault({ [header]: prefix }) : 'Its header is missing.'
}

/** `secretFaultFor` returns what is wrong with a secret for this signing. */
export function secretFaultFor({ kind }: Signing, secret: string): string | undefined {
  const fault = secretFault(secret)
  if (fault !== undefined || kind !== 'bearer' || TOKEN.test(secret)) return fault
  return 'A bearer token must consist of printable characters without spaces.'
}

/** The stored signing may be of a newer version, or of an old one without checks. An unsigned batch is never sent. */
function unknownSigning(how: never): Error {
  return new Error(`This version cannot sign as ${JSON.stringify(how)}. Nothing was sent.`)
}

function computeMac(secret: string, parts: readonly (string | Uint8Array)[], encoding: 'hex' | 'base64'): string {
  if (!ENCODINGS.has(encoding)) throw unknownSigning(encoding as never)
  const hmac = createHmac('sha256', hmacKey(secret))
  for (const part of parts) hmac.update(part)
  return hmac.digest(encoding)
}

/** Key objects are cached, because creating one takes as long as signing a short body. */
const keyCache = new Map<string, KeyObject>()
const MAX_CACHED_KEYS = 10_000

function hmacKey(secret: string): KeyObject {
  const known = keyCache.get(secret)
  if (known !== undefined) return known
  // Passing plain bytes to `createHmac` makes Node create the key in eight times the time.
  const key = createSecretKey(keyBytes(secret))
  const [oldest] = keyCache.keys()
  if (keyCache.size >= MAX_CACHED_KEYS && oldest !== undefined) keyCache.delete(oldest)
  keyCache.set(secret, key)
  return key
}
