// This file holds what most schemes share: an HMAC compared in constant time, and a timestamp that is neither too old
// nor in the future.
import { createHmac, createSecretKey, hash, timingSafeEqual, type BinaryToTextEncoding } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import type { Refusal } from '../receive/source.ts'

export type Algorithm = 'sha1' | 'sha256' | 'sha384' | 'sha512'

export interface Mac {
  readonly algorithm: Algorithm
  readonly encoding: Extract<BinaryToTextEncoding, 'hex' | 'base64'>
  /** The text before the MAC in the given signature. */
  readonly prefix?: string
}

/** The most signatures of one request that are compared: a sender has one per key, a stranger as many as fit the
    headers. */
const SIGNATURES_MAX = 32

/** `hasValidMac` returns whether one of the given texts is the MAC of these bytes with one of the keys. It computes
    all, even after a match. */
export function hasValidMac(
  given: readonly string[],
  parts: readonly (string | Uint8Array)[],
  keys: readonly (string | Uint8Array)[],
  { algorithm, encoding, prefix = '' }: Mac,
): boolean {
  let found = false
  const compared = given.slice(0, SIGNATURES_MAX)
  for (const key of keys) {
    // With plain bytes, Node takes eight times as long to create the key.
    const hmac = createHmac(algorithm, typeof key === 'string' ? key : createSecretKey(key))
    for (const part of parts) hmac.update(part)
    const wanted = prefix + hmac.digest(encoding)
    for (const one of compared) if (equalsConstantTime(one, wanted)) found = true
  }
  return found
}

/** `equalsConstantTime` compares in constant time, except for the length, which is public. */
export function equalsConstantTime(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** `isSameSecret` compares secrets, and hashes them first so that their length stays hidden too. */
export function isSameSecret(given: string, secrets: readonly string[]): boolean {
  const one = hash('sha256', given, 'buffer')
  let found = false
  for (const secret of secrets) if (timingSafeEqual(one, hash('sha256', secret, 'buffer'))) found = true
  return found
}

/** Five minutes, the tolerance of all schemes that have one. */
export const TOLERANCE: Millis = 300_000

/** `parseTolerance` bounds the tolerance: an unbounded one would accept any signed request for ever (R3). */
export function parseTolerance(scheme: string, tolerance: Duration = TOLERANCE): Millis {
  const most = parseDuration(tolerance, `${scheme}: tolerance`)
  if (most > 0 && most <= MAX_TOLERANCE) return most
  throw new SluiceError('CONFIG_INVALID', `${scheme}: tolerance must be above 0 and at most 1 day.`)
}

const MAX_TOLERANCE: Millis = 86_400_000

/** `timestampFault` checks a signed time in seconds, whose text may be invalid. */
export function timestampFault(seconds: string, now: Millis, tolerance: Millis): Refusal | undefined {
  const at = /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : Number.NaN
  if (Number.isNaN(at))
    return refusal('TIMESTAMP_MISSING', 'The request has no signed time.', 'Sign the request as the scheme requires.')
  if (now - at > tolerance) {
    return refusal('TIMESTAMP_OLD', `The request was signed ${now - at} ms ago.`, CLOCK_FIX)
  }
  if (at - now > tolerance) {
    return refusal('TIMESTAMP_IN_FUTURE', `The request was signed ${at - now} ms ahead of time.`, CLOCK_FIX)
  }
  return undefined
}

const CLOCK_FIX = 'Correct the clocks. A delayed request must be signed again when it is sent.'

export function refusal(code: Refusal['code'], what: string, fix: string): Refusal {
  return { code, what, fix }
}

export function missingSignature(header: string): Refusal {
  return refusal('SIGNATURE_MISSING', `There is no ${header} header.`, 'Check that a secret is set at the sender.')
}

export const WRONG_SIGNATURE: Refusal = refusal(
  'SIGNATURE_WRONG',
  'The signature does not match this body with any secret of the source.',
  'Compare the secret with that of the sender, and make sure that nothing in between changes the body.',
)

/** `parseSecrets` rejects a missing secret: a source without a secret does not start (R3). */
export function parseSecrets(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  const list: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  const isGood = list.length > 0 && list.every((one) => typeof one === 'string' && one.trim() !== '')
  if (isGood) return list as readonly string[]
  throw new SluiceError(
    'CONFIG_INVALID',
    `${scheme}: ${option} must not be empty. Pass the one that the sender has, or a list during a rotation.`,
  )
}
