// This file holds what most schemes share: an HMAC compared in constant time, a timestamp that is neither too old nor in
// the future, and test requests (`sluice send`) that carry both.
import { createHmac, createSecretKey, hash, timingSafeEqual, type BinaryToTextEncoding } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { parseDuration, type Duration } from '../model/duration.ts'
import { traceMissingHeader, traceSignature, traceSignedTime } from '../receive/autopsy.ts'
import type { ReceivedRequest, Refusal, SignedRequest, SignOptions, VerifyContext } from '../receive/source.ts'
import { describeTexts, invalidOption } from '../validate/options.ts'

type Headers = Readonly<Record<string, string>>

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

/** `hasValidMac` returns whether one of the given texts is the MAC of the bytes with one of the keys. It computes
    all, even after a match. */
export function hasValidMac(
  values: readonly string[],
  parts: readonly (string | Uint8Array)[],
  keys: readonly (string | Uint8Array)[],
  mac: Mac,
): boolean {
  traceSignature(values, parts, keys.length)
  let found = false
  const compared = values.slice(0, SIGNATURES_MAX)
  for (const key of keys) {
    const wanted = computeMac(key, parts, mac)
    for (const one of compared) if (equalsConstantTime(one, wanted)) found = true
  }
  return found
}

export function computeMac(
  key: string | Uint8Array,
  parts: readonly (string | Uint8Array)[],
  { algorithm, encoding, prefix = '' }: Mac,
): string {
  // With plain bytes, Node takes eight times as long to create the key.
  const hmac = createHmac(algorithm, typeof key === 'string' ? key : createSecretKey(key))
  for (const part of parts) hmac.update(part)
  return prefix + hmac.digest(encoding)
}

interface BodySignature {
  readonly verify: (request: ReceivedRequest, context: Pick<VerifyContext, 'secrets'>) => Refusal | undefined
  readonly sign: (secret: string, body: Uint8Array) => Headers
}

/** `createBodySignature` is for senders that sign the body alone, and put the MAC into one header. */
export function createBodySignature(header: string, mac: Mac): BodySignature {
  return {
    verify: ({ headers, body }, { secrets }) => {
      const given = headers[header]
      if (given === undefined) return missingSignature(header)
      return hasValidMac([given], [body], secrets, mac) ? undefined : WRONG_SIGNATURE
    },
    sign: (secret, body) => ({ [header]: computeMac(secret, [body], mac) }),
  }
}

const TIMED_MAC: Mac = { algorithm: 'sha256', encoding: 'hex' }

/** `TimedSignature` is a header `t=<seconds>,v1=<hex>`, as Stripe and Strava send it. */
interface TimedSignature {
  readonly time: string
  readonly signatures: readonly string[]
}

export function parseTimedSignature(header: string): TimedSignature {
  const entries = header.split(',').map((entry) => entry.trim())
  const valuesOf = (name: string): readonly string[] =>
    entries.filter((entry) => entry.startsWith(`${name}=`)).map((entry) => entry.slice(name.length + 1))
  return { time: valuesOf('t')[0] ?? '', signatures: valuesOf('v1') }
}

export function timedSignatureFault(
  { time, signatures }: TimedSignature,
  body: Uint8Array,
  { now, secrets }: VerifyContext,
  tolerance: Millis,
): Refusal | undefined {
  if (!hasValidMac(signatures, [`${time}.`, body], secrets, TIMED_MAC)) return WRONG_SIGNATURE
  return timestampFault(time, now, tolerance)
}

export function formatTimedSignature(secret: string, seconds: string, body: Uint8Array): string {
  return `t=${seconds},v1=${computeMac(secret, [`${seconds}.`, body], TIMED_MAC)}`
}

/** `equalsConstantTime` compares in constant time, except for the length, which is public. */
export function equalsConstantTime(value: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(value), Buffer.from(wanted)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** `isSameSecret` compares secrets, and hashes them first so that their length stays hidden too. */
export function isSameSecret(value: string, secrets: readonly string[]): boolean {
  const one = hash('sha256', value, 'buffer')
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
  throw invalidOption(`${scheme}: tolerance must be above 0 and at most 1 day.`)
}

const MAX_TOLERANCE: Millis = 86_400_000

/** `timestampFault` checks a signed time in seconds, whose text may be invalid. */
export function timestampFault(seconds: string, now: Millis, tolerance: Millis): Refusal | undefined {
  const at = /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : Number.NaN
  if (Number.isNaN(at))
    return refusal('TIMESTAMP_MISSING', 'The request has no signed time.', 'Sign the request as the scheme requires.')
  traceSignedTime(at)
  if (now - at > tolerance) {
    return refusal('TIMESTAMP_OLD', `The request was signed ${now - at} ms ago.`, CLOCK_FIX)
  }
  if (at - now > tolerance) {
    return refusal('TIMESTAMP_IN_FUTURE', `The request was signed ${at - now} ms ahead of time.`, CLOCK_FIX)
  }
  return undefined
}

const CLOCK_FIX = 'Correct the clocks. A delayed request must be signed again when it is sent.'

export function refusal(code: Refusal['code'], message: string, fix: string): Refusal {
  return { code, what: message, fix }
}

/** `notUnderstood` refuses a request that is genuine, but not what the source reads. */
export function notUnderstood(message: string, fix: string): Refusal {
  return refusal('BODY_NOT_UNDERSTOOD', message, fix)
}

export function missingSignature(header: string): Refusal {
  traceMissingHeader(header)
  return refusal('SIGNATURE_MISSING', `There is no ${header} header.`, 'Check that a secret is set at the sender.')
}

export const WRONG_SIGNATURE: Refusal = refusal(
  'SIGNATURE_WRONG',
  'The signature does not match this body with any secret of the source.',
  'Compare the secret with that of the sender, and make sure that nothing in between changes the body.',
)

/**
 * `Secrets` is one secret, or several during a rotation. The type accepts `undefined`, so that `process.env.SECRET` needs no
 * cast; a source whose secret is undefined does not start.
 */
export type Secrets = string | readonly string[] | undefined

/** `parseSecrets` rejects a missing secret: a source without a secret does not start (R3). */
export function parseSecrets(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  const list: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  const isGood = list.length > 0 && list.every((one) => typeof one === 'string' && one.trim() !== '')
  if (isGood) return list as readonly string[]
  const hint = 'Pass the one that the sender has, or a list during a rotation.'
  const rule = 'must be non-empty text, or a list of non-empty texts'
  throw invalidOption(`${scheme}: ${option} ${rule}; got ${describeTexts(secret)}. ${hint}`)
}

/** `signJson` posts the given body, or the example as JSON, with the headers that `sign` returns for it. */
export function signJson(
  { url, data, headers }: SignOptions,
  example: object,
  sign: (body: Uint8Array) => Headers,
): SignedRequest {
  const body = data ?? Buffer.from(JSON.stringify(example))
  return { url, body, headers: { 'content-type': 'application/json', ...headers, ...sign(body) } }
}

export function formatSeconds(now: Millis): string {
  return String(Math.floor(now / 1_000))
}
