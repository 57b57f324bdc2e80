// `Signer` turns a `SignRequest` into a test request as the provider would send it.
import { createHmac } from 'node:crypto'
import type { Millis } from '../../clock.ts'
import type { Mac } from '../../sources/signature.ts'
import type { Sender } from '../../receive/source.ts'

export interface SignRequest {
  /** The type of the event; undefined for the most common one. */
  readonly type: string | undefined
  /** The body to send; undefined for an example. */
  readonly data: Uint8Array | undefined
  /** Unique per request, so that none is a duplicate. */
  readonly id: string
  readonly now: Millis
  readonly secret: string
  /** The URL of the source. */
  readonly url: URL
  /** What the source says about its senders besides the secret. */
  readonly sender: Sender | undefined
}

export interface SignedRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A returned text says why the request cannot be signed. */
export type Signer = (asked: SignRequest) => SignedRequest | string

export const JSON_TYPE = { 'content-type': 'application/json' } as const

export function computeMac(key: string | Uint8Array, parts: readonly (string | Uint8Array)[], mac: Mac): string {
  const hmac = createHmac(mac.algorithm, key)
  for (const part of parts) hmac.update(part)
  return (mac.prefix ?? '') + hmac.digest(mac.encoding)
}

export function requestBody({ data }: SignRequest, example: object): Uint8Array {
  return data ?? Buffer.from(JSON.stringify(example))
}

export function toSeconds(now: Millis): string {
  return String(Math.floor(now / 1_000))
}
