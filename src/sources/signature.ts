// What most schemes have in common: an HMAC over some bytes, compared in constant time, and a time that is neither old nor to come.
import { createHmac, createSecretKey, hash, timingSafeEqual, type BinaryToTextEncoding } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { millis, type Duration } from '../model/duration.ts'
import type { Refusal } from '../receive/source.ts'

export type Algorithm = 'sha1' | 'sha256' | 'sha384' | 'sha512'

export interface Mac {
  readonly algorithm: Algorithm
  readonly encoding: Extract<BinaryToTextEncoding, 'hex' | 'base64'>
  /** Before the MAC in what is given. */
  readonly prefix?: string
}

/** Whether one of the texts given is the MAC of these bytes by one of the keys. All are computed, whichever fits. */
export function isSigned(
  given: readonly string[],
  parts: readonly (string | Uint8Array)[],
  keys: readonly (string | Uint8Array)[],
  { algorithm, encoding, prefix = '' }: Mac,
): boolean {
  let found = false
  for (const key of keys) {
    // Of plain bytes Node makes a key in eight times the time.
    const hmac = createHmac(algorithm, typeof key === 'string' ? key : createSecretKey(key))
    for (const part of parts) hmac.update(part)
    const wanted = prefix + hmac.digest(encoding)
    for (const one of given) if (isSame(one, wanted)) found = true
  }
  return found
}

/** In constant time, but for the length, which is known. */
export function isSame(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** The same for what is a secret itself: nothing is told of its length either. */
export function isSameSecret(given: string, secrets: readonly string[]): boolean {
  const one = hash('sha256', given, 'buffer')
  let found = false
  for (const secret of secrets) if (timingSafeEqual(one, hash('sha256', secret, 'buffer'))) found = true
  return found
}

/** Five minutes, as all schemes that have a tolerance use. */
export const TOLERANCE: Millis = 300_000

/** What is signed with a time is refused when that is old (R3), so that a tolerance without end is none. */
export function toleranceOf(scheme: string, tolerance: Duration = TOLERANCE): Millis {
  const most = millis(tolerance, `${scheme}: tolerance`)
  if (most > 0 && most <= TOLERANCE_MAX) return most
  throw new SluiceError('CONFIG_INVALID', `${scheme}: tolerance is above 0 and at most 1 day.`)
}

const TOLERANCE_MAX: Millis = 86_400_000

/** Of a signed time in seconds: the text may be nonsense. */
export function timeFault(seconds: string, now: Millis, tolerance: Millis): Refusal | undefined {
  const at = /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : Number.NaN
  if (Number.isNaN(at))
    return refusal('TIMESTAMP_MISSING', 'The request has no signed time.', 'Send it as the scheme says.')
  if (now - at > tolerance) {
    return refusal('TIMESTAMP_OLD', `The request was signed ${now - at} ms ago.`, CLOCKS)
  }
  if (at - now > tolerance) {
    return refusal('TIMESTAMP_IN_FUTURE', `The request was signed ${at - now} ms ahead of time.`, CLOCKS)
  }
  return undefined
}

const CLOCKS = 'Set the clocks right; a request that was held up is to be signed anew when it is sent.'

export function refusal(code: Refusal['code'], what: string, fix: string): Refusal {
  return { code, what, fix }
}

export function unsigned(header: string): Refusal {
  return refusal(
    'SIGNATURE_MISSING',
    `There is no ${header} header.`,
    'Look whether a secret is set on the sending side.',
  )
}

export const FORGED: Refusal = refusal(
  'SIGNATURE_WRONG',
  'The signature is not that of this body by any secret of the source.',
  'Compare the secret with that of the sending side, and see that nothing in between changes the body.',
)

/** A source without a secret does not start (R3). */
export function secretsOf(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  const list: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  const isGood = list.length > 0 && list.every((one) => typeof one === 'string' && one.trim() !== '')
  if (isGood) return list as readonly string[]
  throw new SluiceError(
    'CONFIG_INVALID',
    `${scheme}: ${option} is empty or missing; give the one that the sending side has, or a list while it is exchanged.`,
  )
}
