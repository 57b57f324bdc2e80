// The secrets of an endpoint: made or given, two of them while they are exchanged (D1).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'

interface EndpointSecret {
  readonly text: string
  readonly since: Millis
  /** Undefined is that of the newest: it has no end yet. */
  readonly until: Millis | undefined
}

/** The newest first. */
export type EndpointSecrets = readonly [EndpointSecret, ...EndpointSecret[]]

export type Rotated =
  | { readonly kind: 'rotated'; readonly secrets: EndpointSecrets }
  /** Who rotates twice would end a secret that the other side may still go by. */
  | { readonly kind: 'rotating'; readonly until: Millis }

const PREFIX = 'whsec_'
const MADE_BYTES = 32
const LEAST_BYTES = 16
const MOST_BYTES = 1_024
const OVERLAP: Millis = 24 * 3_600_000
/** Only in this one way: what is lenient here is read otherwise by the other side. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export function newSecret(): string {
  return PREFIX + randomBytes(MADE_BYTES).toString('base64')
}

/** What is wrong with a secret that somebody has given. */
export function secretFault(secret: string): string | undefined {
  if (typeof secret !== 'string') return 'It is no text.'
  if (secret.startsWith(PREFIX) && !BASE64.test(secret.slice(PREFIX.length)))
    return `What follows ${PREFIX} is no base64.`
  if (!secret.isWellFormed()) return 'It is no text.'
  const { length } = keyBytes(secret)
  if (length < LEAST_BYTES) return `It has ${length} bytes; ${LEAST_BYTES} are the least.`
  return length > MOST_BYTES ? `It has ${length} bytes; ${MOST_BYTES} are the most.` : undefined
}

export function keyBytes(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}

export function firstSecret(text: string, now: Millis): EndpointSecrets {
  return [{ text, since: now, until: undefined }]
}

/** The newest first. */
export function activeSecrets(secrets: EndpointSecrets, now: Millis): readonly string[] {
  return active(secrets, now).map(({ text }) => text)
}

/** The one before goes on for a day; with `force` the new one is alone at once. */
export function rotated(secrets: EndpointSecrets, text: string, now: Millis, force = false): Rotated {
  if (force) return { kind: 'rotated', secrets: firstSecret(text, now) }
  const [newest, previous] = active(secrets, now)
  if (text === newest.text) return { kind: 'rotated', secrets }
  if (previous?.until !== undefined) return { kind: 'rotating', until: previous.until }
  const left = { ...newest, until: now + OVERLAP }
  return { kind: 'rotated', secrets: [{ text, since: now, until: undefined }, left] }
}

function active([newest, ...older]: EndpointSecrets, now: Millis): EndpointSecrets {
  return [newest, ...older.filter(({ until }) => until !== undefined && now < until)]
}
