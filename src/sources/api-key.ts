// `apiKey` verifies a key in a header, or in the query where the sender can set nothing else. The key proves who sends,
// not what.
import { SluiceError } from '../errors.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { ReceivedRequest, SignedRequest, Source, SourceResponse } from '../receive/source.ts'
import { credentialsFault, parseHeaderSecrets } from './credentials.ts'
import { createNamedEventParser, NAMING_OPTIONS, type NamingOptions } from './event-names.ts'
import { signNamed } from './sign.ts'
import { parseSecrets } from './signature.ts'

export interface ApiKeyOptions extends NamingOptions {
  /** The key. */
  readonly secret: string | readonly string[]
  /** The default is `x-api-key`. */
  readonly header?: string
  /** A query parameter instead of a header. URLs end up in logs, so a header is better. */
  readonly query?: string
  readonly answer?: SourceResponse
}

const KNOWN: ReadonlySet<string> = new Set<keyof ApiKeyOptions>([
  'secret',
  'header',
  'query',
  'answer',
  ...NAMING_OPTIONS,
])
const DEFAULT_HEADER = 'x-api-key'

export function apiKey(options: ApiKeyOptions): Source {
  assertKnownOptions(options, KNOWN, 'apiKey: ')
  const { header, query, answer } = options
  if ((header !== undefined && query !== undefined) || header === '' || query === '') {
    throw new SluiceError('CONFIG_INVALID', 'apiKey: set either header or query, and not to an empty text.')
  }
  const place = toKeyLocation(header, query)
  return {
    scheme: 'apiKey',
    secrets: (query === undefined ? parseHeaderSecrets : parseSecrets)('apiKey', options.secret),
    dedupeFor: '30d',
    verify: (request, { secrets }) => credentialsFault(place.name, place.read(request), secrets),
    events: createNamedEventParser('apiKey', options),
    sign: (asked) => place.write(signNamed(asked, options), asked.secret),
    ...(answer !== undefined && { answer }),
  }
}

interface KeyLocation {
  readonly name: string
  readonly read: (request: ReceivedRequest) => string | undefined
  readonly write: (request: SignedRequest, key: string) => SignedRequest
}

function toKeyLocation(header: string = DEFAULT_HEADER, query: string | undefined): KeyLocation {
  if (query === undefined) {
    const name = header.toLowerCase()
    return {
      name: `${header} header`,
      read: ({ headers }) => headers[name],
      write: (request, key) => ({ ...request, headers: { ...request.headers, [name]: key } }),
    }
  }
  return {
    name: `${query} in the query`,
    read: ({ url }) => url.searchParams.get(query) ?? undefined,
    write: (request, key) => {
      const url = new URL(request.url)
      url.searchParams.set(query, key)
      return { ...request, url }
    },
  }
}
