// Encrypts the confidential fields of an endpoint document: its secrets, and its own headers, which may contain a
// password (D1).
import type { Keyring, EncryptedDocs } from '../crypto/keyring.ts'
import type { Millis } from '../clock.ts'
import type { HeaderMap } from './http/headers.ts'
import { filterActive, type EndpointSecrets } from './secrets.ts'
import type { Signing } from './signing.ts'

export interface ConfidentialFields {
  readonly secrets: EndpointSecrets
  readonly headers: HeaderMap
}

/** `BoundFields` are authenticated with the encrypted part. A changed field makes the secrets unreadable. */
interface BoundFields {
  readonly id: string
  readonly tenant: string
  /** Where the secret (as a bearer token) and the endpoint's own headers are sent. */
  readonly url: string
  /** Whether the secret signs the body or is sent as a bearer token. */
  readonly signing: Signing
}

export interface EncryptedFields extends BoundFields {
  /** The names of the headers. */
  readonly headers: readonly string[]
  readonly encrypted64: string
}

export function encryptConfidential(keyring: Keyring, what: ConfidentialFields, bound: BoundFields): string {
  return keyring.encrypt(Buffer.from(JSON.stringify(what)), secretPurpose(bound)).toString('base64')
}

/** Decrypted fields are cached, because every POST needs them and decrypting takes as long as signing. */
const decryptedCache = new WeakMap<Keyring, Map<string, ConfidentialFields>>()
const MAX_CACHED = 10_000

export function decryptConfidential(keyring: Keyring, kept: EncryptedFields): ConfidentialFields {
  const purpose = secretPurpose(kept)
  const known = decryptedCache.get(keyring) ?? new Map<string, ConfidentialFields>()
  // The cache key contains the ciphertext and its bound fields. A change of either is decrypted again, or rejected.
  const name = `${kept.encrypted64} ${purpose}`
  let found = known.get(name)
  if (found === undefined) {
    found = JSON.parse(
      keyring.decrypt(Buffer.from(kept.encrypted64, 'base64'), purpose).toString(),
    ) as ConfidentialFields
    const [oldest] = known.keys()
    if (known.size >= MAX_CACHED && oldest !== undefined) known.delete(oldest)
    decryptedCache.set(keyring, known.set(name, found))
  }
  return found
}

interface SecretTimes {
  /** When each active secret began and when it ends; the newest first. Missing where the endpoints are listed. */
  readonly secrets?: readonly { readonly since: Millis; readonly until?: Millis }[]
}

/** `findSecretTimes` returns nothing if the key that encrypts the secrets is missing, so that the endpoint is still shown. */
export function findSecretTimes(keyring: Keyring, kept: EncryptedFields, now: Millis): SecretTimes {
  try {
    const { secrets } = decryptConfidential(keyring, kept)
    return {
      secrets: filterActive(secrets, now).map(({ since, until }) => ({ since, ...(until !== undefined && { until }) })),
    }
  } catch {
    return {}
  }
}

/** `ENDPOINT_DOCS` tells the key rotation how to re-encrypt an endpoint document. */
export const ENDPOINT_DOCS: EncryptedDocs = {
  kind: 'endpoint',
  reencrypt: (keyring, { id, body }) => {
    const kept = JSON.parse(Buffer.from(body).toString()) as EncryptedFields
    const encrypted = keyring.reencrypt(Buffer.from(kept.encrypted64, 'base64'), secretPurpose({ ...kept, id }))
    if (encrypted === undefined) return undefined
    return Buffer.from(JSON.stringify({ ...kept, encrypted64: encrypted.toString('base64') }))
  },
}

/** JSON keeps the purposes of any two endpoints different. */
function secretPurpose({ id, tenant, url, signing }: BoundFields): string {
  return `secrets of endpoint ${JSON.stringify([id, tenant, url, signing])}`
}
