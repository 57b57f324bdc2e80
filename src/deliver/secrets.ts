// The secrets of an endpoint, generated or given. During a rotation, two secrets are active (D1).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import { SluiceError } from '../errors.ts'

interface EndpointSecret {
  readonly text: string
  readonly since: Millis
  /** Undefined for the newest secret, which has no end yet. */
  readonly until: Millis | undefined
}

export interface RotateSecretOptions {
  readonly secret: string
  readonly force: boolean
  readonly by: string
}

/** The newest secret first. */
export type EndpointSecrets = readonly [EndpointSecret, ...EndpointSecret[]]

export type RotationResult =
  | { readonly kind: 'rotated'; readonly secrets: EndpointSecrets }
  /** A second rotation would end a secret that the other side may still use. */
  | { readonly kind: 'rotating'; readonly until: Millis }

const PREFIX = 'whsec_'
const NEW_SECRET_BYTES = 32
const MIN_BYTES = 16
const MAX_BYTES = 1_024
const OVERLAP: Millis = 24 * 3_600_000
/** Only strict base64, because the other side may read a lenient form differently. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export function newSecret(): string {
  return PREFIX + randomBytes(NEW_SECRET_BYTES).toString('base64')
}

/** `secretFault` returns what is wrong with a given secret. */
export function secretFault(secret: string): string | undefined {
  if (typeof secret !== 'string') return 'It must be a string.'
  if (secret.startsWith(PREFIX) && !BASE64.test(secret.slice(PREFIX.length)))
    return `The text after ${PREFIX} must be base64.`
  if (!secret.isWellFormed()) return 'It must be a string.'
  const { length } = keyBytes(secret)
  if (length < MIN_BYTES) return `It must have at least ${MIN_BYTES} bytes; got ${length}.`
  return length > MAX_BYTES ? `It must have at most ${MAX_BYTES} bytes; got ${length}.` : undefined
}

export function keyBytes(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}

export function firstSecret(text: string, now: Millis): EndpointSecrets {
  return [{ text, since: now, until: undefined }]
}

/** `activeSecrets` returns the newest secret first. */
export function activeSecrets(secrets: EndpointSecrets, now: Millis): readonly string[] {
  return filterActive(secrets, now).map(({ text }) => text)
}

/** `rotateSecret` keeps the previous secret active for a day. With `force`, only the new secret is active. */
export function rotateSecret(secrets: EndpointSecrets, text: string, now: Millis, force = false): RotationResult {
  if (force) return { kind: 'rotated', secrets: firstSecret(text, now) }
  const [newest, previous] = filterActive(secrets, now)
  if (text === newest.text) return { kind: 'rotated', secrets }
  if (previous?.until !== undefined) return { kind: 'rotating', until: previous.until }
  const left = { ...newest, until: now + OVERLAP }
  return { kind: 'rotated', secrets: [{ text, since: now, until: undefined }, left] }
}

/** `rotateSecrets` is `rotateSecret` for a caller who sees the reason why a rotation is rejected. */
export function rotateSecrets(
  before: EndpointSecrets,
  { secret, force = false }: Pick<RotateSecretOptions, 'secret'> & Partial<RotateSecretOptions>,
  now: Millis,
): EndpointSecrets {
  const next = rotateSecret(before, secret, now, force)
  if (next.kind === 'rotated') return next.secrets
  const until = new Date(next.until).toISOString()
  throw new SluiceError('CONFLICT', `The previous secret stays active until ${until}. Use force to end it now.`)
}

/** `filterActive` returns the newest secret, and older ones that have not ended. */
export function filterActive([newest, ...older]: EndpointSecrets, now: Millis): EndpointSecrets {
  return [newest, ...older.filter(({ until }) => until !== undefined && now < until)]
}
