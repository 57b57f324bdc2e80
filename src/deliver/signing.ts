// How a subscriber knows that a batch is from us: the headers that prove it (D1).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { headersFault, type Headers } from './headers.ts'
import { keyBytes, secretFault } from './secrets.ts'

export type Signing =
  /** Standard Webhooks: id, time and body, a signature for each active secret. */
  | { readonly kind: 'standard' }
  /** The body alone, under a name of one's own. While two secrets are active, the older one's; the newer one's is in `<header>-next`. */
  | {
      readonly kind: 'hmac'
      readonly header: string
      readonly encoding: 'hex' | 'base64'
      readonly prefix?: string
    }
  /** Nothing is signed; the secret itself is shown. While two are active, the older. */
  | { readonly kind: 'bearer' }

export interface ToSign {
  /** The same over all tries. */
  readonly id: string
  /** Of this try, in milliseconds. */
  readonly at: number
  readonly body: Uint8Array
  /** All that are active, the newest first; at least one. */
  readonly secrets: readonly string[]
}

/** The specification leaves open where the id ends if it has a dot itself. */
const ID = /^[A-Za-z0-9_-]{1,200}$/
const TOKEN = /^[\x21-\x7e]+$/
const ENCODINGS: ReadonlySet<string> = new Set(['hex', 'base64'])
const OPTIONS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['standard', ['kind']],
  ['hmac', ['kind', 'header', 'encoding', 'prefix']],
  ['bearer', ['kind']],
])

export function signedHeaders(signing: Signing, { id, at, body, secrets }: ToSign): Headers {
  const newest = secrets[0]
  // Where there is room for one only, it is the one that the other side has for sure: the oldest, until it ends.
  const oldest = secrets.at(-1)
  if (newest === undefined || oldest === undefined) throw new Error('There is no secret to sign with.')
  switch (signing.kind) {
    case 'standard': {
      if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} cannot be signed as an id.`)
      const time = String(Math.floor(at / 1_000))
      const signatures = secrets.map((secret) => `v1,${mac(secret, [`${id}.${time}.`, body], 'base64')}`)
      return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signatures.join(' ') }
    }
    case 'hmac': {
      const signed = (secret: string): string => `${signing.prefix ?? ''}${mac(secret, [body], signing.encoding)}`
      const next = newest === oldest ? {} : { [`${signing.header}-next`]: signed(newest) }
      return { 'webhook-id': id, [signing.header]: signed(oldest), ...next }
    }
    case 'bearer':
      return { 'webhook-id': id, authorization: `Bearer ${oldest}` }
    default:
      throw unsigned(signing)
  }
}

/** What is wrong with a way to sign that somebody has chosen: types end where JavaScript begins. */
export function signingFault(signing: Signing): string | undefined {
  const known = OPTIONS.get(signing?.kind)
  if (known === undefined) return `Its kind is one of ${[...OPTIONS.keys()].join(', ')}.`
  const unknown = Object.keys(signing).find((option) => !known.includes(option))
  if (unknown !== undefined) return `${unknown} is no option of it; there are ${known.join(', ')}.`
  if (signing.kind !== 'hmac') return undefined
  const { header, encoding, prefix = '' } = signing
  if (!ENCODINGS.has(encoding)) return `Its encoding is one of ${[...ENCODINGS].join(', ')}.`
  return typeof header === 'string' ? headersFault({ [header]: prefix }) : 'Its header is missing.'
}

/** What is wrong with a secret, where it is used like that. */
export function secretFaultFor({ kind }: Signing, secret: string): string | undefined {
  const fault = secretFault(secret)
  if (fault !== undefined || kind !== 'bearer' || TOKEN.test(secret)) return fault
  return 'A bearer token is of printable characters without spaces.'
}

/** It may be of a version to come, or of one before this was checked: what is not signed is not sent. */
function unsigned(how: never): Error {
  return new Error(`Nobody here knows how to sign as ${JSON.stringify(how)}; nothing was sent.`)
}

function mac(secret: string, parts: readonly (string | Uint8Array)[], encoding: 'hex' | 'base64'): string {
  if (!ENCODINGS.has(encoding)) throw unsigned(encoding as never)
  const hmac = createHmac('sha256', keyOf(secret))
  for (const part of parts) hmac.update(part)
  return hmac.digest(encoding)
}

/** Made once: to make one takes as long as to sign a short body. */
const made = new Map<string, KeyObject>()
const MOST_MADE = 10_000

function keyOf(secret: string): KeyObject {
  const known = made.get(secret)
  if (known !== undefined) return known
  // Of plain bytes Node makes a key in eight times the time.
  const key = createSecretKey(keyBytes(secret))
  const [oldest] = made.keys()
  if (made.size >= MOST_MADE && oldest !== undefined) made.delete(oldest)
  made.set(secret, key)
  return key
}
