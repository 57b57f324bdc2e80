// This file holds what the `sign` functions of the sources share. They build test requests (`sluice send`) as the provider
// would send them.
import { createHmac } from 'node:crypto'
import type { Millis } from '../clock.ts'
import type { SignedRequest, SignOptions } from '../receive/source.ts'
import type { NamingOptions } from './event-names.ts'
import type { Mac } from './signature.ts'

type Headers = Readonly<Record<string, string>>

/** `signJson` posts the given body, or the example as JSON, with the headers that `sign` returns for it. */
export function signJson(
  { url, data, headers }: SignOptions,
  example: object,
  sign: (body: Uint8Array) => Headers,
): SignedRequest {
  const body = data ?? Buffer.from(JSON.stringify(example))
  return { url, body, headers: { 'content-type': 'application/json', ...headers, ...sign(body) } }
}

/** `signNamed` does the same for sources whose user says where the type is. */
export function signNamed(asked: SignOptions, { type: at }: NamingOptions, proof: Headers = {}): SignedRequest {
  const { id, type = 'test' } = asked
  const place = typeof at === 'string' ? at : 'type'
  const [, header] = /^header:(.*)$/.exec(place) ?? []
  if (header !== undefined) return signJson(asked, { id }, () => ({ [header.trim().toLowerCase()]: type, ...proof }))
  return signJson(asked, { id, ...nest(place.split('.'), type) }, () => proof)
}

function nest([first = '', ...rest]: readonly string[], value: string): Readonly<Record<string, unknown>> {
  return { [first]: rest.length === 0 ? value : nest(rest, value) }
}

export function computeMac(key: string | Uint8Array, parts: readonly (string | Uint8Array)[], mac: Mac): string {
  const hmac = createHmac(mac.algorithm, key)
  for (const part of parts) hmac.update(part)
  return (mac.prefix ?? '') + hmac.digest(mac.encoding)
}

export function formatSeconds(now: Millis): string {
  return String(Math.floor(now / 1_000))
}
