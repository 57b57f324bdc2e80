// What a request to a subscriber carries beside its body, and what an endpoint's own headers may not touch.
import { isObject } from '../model/arguments.ts'

export type Headers = Readonly<Record<string, string>>

/** Where it goes, how it is framed, who signed it: said by us alone. */
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

/** What is wrong with the headers that somebody wants an endpoint to be sent. */
export function headersFault(extra: Headers): string | undefined {
  if (!isObject(extra)) return 'They are an object of names and values.'
  const seen = new Set<string>()
  let bytes = 0
  for (const [given, value] of Object.entries(extra)) {
    const name = given.toLowerCase()
    if (!NAME.test(name)) return `${JSON.stringify(given)} is no name of a header.`
    if (RESERVED.has(name) || RESERVED_FAMILIES.test(name)) return `${name} is not for an endpoint to say.`
    if (seen.has(name)) return `${name} is there twice.`
    if (typeof value !== 'string' || !isHeaderText(value)) return `The value of ${name} is not plain printable text.`
    seen.add(name)
    bytes += name.length + value.length
  }
  return bytes > BYTES_MAX ? `They are longer than ${BYTES_MAX} bytes together.` : undefined
}

/** Null takes one away. */
export type HeadersChange = Readonly<Record<string, string | null>>

/** What is not named stays: who changes one need not know the others. */
export function changedHeaders(before: Headers, change: HeadersChange): Headers {
  const named = new Set(Object.keys(change).map((name) => name.toLowerCase()))
  return Object.fromEntries([
    ...Object.entries(before).filter(([name]) => !named.has(name.toLowerCase())),
    ...Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
  ])
}

export function isHeaderText(value: string): boolean {
  return VALUE.test(value)
}

/** Names in lower case, the later of two of one name wins: so ours come last. */
export function joined(...all: readonly Headers[]): Record<string, string> {
  const together: Record<string, string> = {}
  for (const headers of all) {
    for (const name of Object.keys(headers)) together[name.toLowerCase()] = headers[name] ?? ''
  }
  return together
}
