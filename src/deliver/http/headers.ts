// The headers of a request to a subscriber, and the headers that an endpoint may not set.
import { isObject } from '../../validate/options.ts'

export type HeaderMap = Readonly<Record<string, string>>

/** Only Sluice sets the headers for routing, framing and signatures. */
const RESERVED: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])
const RESERVED_FAMILIES = /^(?:proxy-|webhook-|svix-|:)/
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
const VALUE = /^[\x20-\x7e]*$/
const BYTES_MAX = 4_096

/** `headersFault` returns what is wrong with the headers of an endpoint. */
export function headersFault(extra: HeaderMap): string | undefined {
  if (!isObject(extra)) return 'They must be an object of names and values.'
  const seen = new Set<string>()
  let bytes = 0
  for (const [given, value] of Object.entries(extra)) {
    const name = given.toLowerCase()
    if (!NAME.test(name)) return `${JSON.stringify(given)} is not a valid header name.`
    if (RESERVED.has(name) || RESERVED_FAMILIES.test(name)) return `An endpoint cannot set ${name}.`
    if (seen.has(name)) return `${name} occurs twice.`
    if (typeof value !== 'string' || !isHeaderText(value)) return `The value of ${name} must be printable ASCII text.`
    seen.add(name)
    bytes += name.length + value.length
  }
  return bytes > BYTES_MAX ? `Together they must have at most ${BYTES_MAX} bytes.` : undefined
}

/** Null removes a header. */
export type HeadersChange = Readonly<Record<string, string | null>>

/** `applyHeadersChange` keeps the headers that are not named, so that a caller need not know the others. */
export function applyHeadersChange(before: HeaderMap, change: HeadersChange): HeaderMap {
  const named = new Set(Object.keys(change).map((name) => name.toLowerCase()))
  return Object.fromEntries([
    ...Object.entries(before).filter(([name]) => !named.has(name.toLowerCase())),
    ...Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
  ])
}

export function isHeaderText(value: string): boolean {
  return VALUE.test(value)
}

/** `mergeHeaders` writes names in lower case. The last of equal names wins, so Sluice's own headers come last. */
export function mergeHeaders(...all: readonly HeaderMap[]): Record<string, string> {
  const together: Record<string, string> = {}
  for (const headers of all) {
    for (const name of Object.keys(headers)) together[name.toLowerCase()] = headers[name] ?? ''
  }
  return together
}
