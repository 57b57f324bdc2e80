// A test request as its provider would send it: what a signer is asked for, and what it makes.
import { createHmac } from 'node:crypto'
import type { Millis } from '../../clock.ts'
import type { Mac } from '../../sources/signature.ts'
import type { Sender } from '../../receive/source.ts'

export interface Asked {
  /** As events of the source are called; undefined for the most usual one. */
  readonly type: string | undefined
  /** The body as it is to be; undefined for an example. */
  readonly data: Uint8Array | undefined
  /** Another one for each request, so that none is a duplicate. */
  readonly id: string
  readonly now: Millis
  readonly secret: string
  /** Where it goes. */
  readonly url: URL
  /** What the source tells of its senders beside the secret. */
  readonly sender: Sender | undefined
}

export interface Signed {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A text says why it cannot be done. */
export type Signer = (asked: Asked) => Signed | string

export const JSON_TYPE = { 'content-type': 'application/json' } as const

export function macOf(key: string | Uint8Array, parts: readonly (string | Uint8Array)[], mac: Mac): string {
  const hmac = createHmac(mac.algorithm, key)
  for (const part of parts) hmac.update(part)
  return (mac.prefix ?? '') + hmac.digest(mac.encoding)
}

export function bodyOf({ data }: Asked, example: object): Uint8Array {
  return data ?? Buffer.from(JSON.stringify(example))
}

export function secondsOf(now: Millis): string {
  return String(Math.floor(now / 1_000))
}
