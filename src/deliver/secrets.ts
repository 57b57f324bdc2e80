// The secrets of an endpoint: made or given, two of them while they are exchanged, sealed at rest and never shown again (D1).
import { randomBytes } from 'node:crypto'
import type { Millis } from '../clock.ts'
import type { Seal, SealedDocs } from '../seal.ts'

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

export interface SecretOwner {
  readonly endpoint: string
  readonly tenant: string
}

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

/** `force` ends all but the one that is in use, at once. */
export function rotated(secrets: EndpointSecrets, text: string, now: Millis, force = false): Rotated {
  const [newest, previous] = active(secrets, now)
  if (previous?.until !== undefined && !force) return { kind: 'rotating', until: previous.until }
  const left = { ...newest, until: now + OVERLAP }
  return { kind: 'rotated', secrets: [{ text, since: now, until: undefined }, left] }
}

export function sealSecrets(seal: Seal, secrets: EndpointSecrets, owner: SecretOwner): Buffer {
  return seal.seal(Buffer.from(JSON.stringify(secrets)), purposeOf(owner))
}

/** What was opened stays at hand while it is the same: every POST needs it, and to open it takes as long as to sign. */
const atHand = new WeakMap<Seal, Map<string, EndpointSecrets>>()
const MOST_AT_HAND = 10_000

export function openSecrets(seal: Seal, sealed: Uint8Array, owner: SecretOwner): EndpointSecrets {
  const purpose = purposeOf(owner)
  const known = atHand.get(seal) ?? new Map<string, EndpointSecrets>()
  // All of the bytes, and whose they are: a change of either is opened anew, or refused.
  const name = `${Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length).toString('latin1')} ${purpose}`
  const found = known.get(name)
  if (found !== undefined) return found
  const secrets = JSON.parse(seal.open(sealed, purpose).toString()) as EndpointSecrets
  const [oldest] = known.keys()
  if (known.size >= MOST_AT_HAND && oldest !== undefined) known.delete(oldest)
  atHand.set(seal, known.set(name, secrets))
  return secrets
}

/** Of a document that is otherwise none of our business. */
export const ENDPOINT_DOCS: SealedDocs = {
  kind: 'endpoint',
  resealed: (seal, { id, body }) => {
    const kept = JSON.parse(Buffer.from(body).toString()) as { readonly tenant: string; readonly sealed64: string }
    const owner = { endpoint: id, tenant: kept.tenant }
    const sealed = seal.resealed(Buffer.from(kept.sealed64, 'base64'), purposeOf(owner))
    if (sealed === undefined) return undefined
    return Buffer.from(JSON.stringify({ ...kept, sealed64: sealed.toString('base64') }))
  },
}

function active([newest, ...older]: EndpointSecrets, now: Millis): EndpointSecrets {
  return [newest, ...older.filter(({ until }) => until !== undefined && now < until)]
}

/** Written such that no two owners have the same: what is sealed for one is of no use in the row of another. */
function purposeOf({ endpoint, tenant }: SecretOwner): string {
  return `secrets of endpoint ${JSON.stringify([endpoint, tenant])}`
}
