// A key in a header, or in the query where the sender can set nothing else. It proves who sends, not what.
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, SenderProof, Source, SourceAnswer } from '../receive/source.ts'
import { credentialsFault, headerSecretsOf } from './credentials.ts'
import { eventsNamedBy, NAMING, typeAt, type NamingOptions } from './named-by.ts'
import { secretsOf } from './signature.ts'

export interface ApiKeyOptions extends NamingOptions {
  /** The key. */
  readonly secret: string | readonly string[]
  /** `x-api-key` unless said. */
  readonly header?: string
  /** Instead of a header: a parameter of the query. Addresses end up in logs, so that a header is better. */
  readonly query?: string
  readonly answer?: SourceAnswer
}

const KNOWN: ReadonlySet<string> = new Set<keyof ApiKeyOptions>(['secret', 'header', 'query', 'answer', ...NAMING])
const DEFAULT_HEADER = 'x-api-key'

export function apiKey(options: ApiKeyOptions): Source {
  onlyKnown(options, KNOWN, 'apiKey: ')
  const { header, query, answer } = options
  if ((header !== undefined && query !== undefined) || header === '' || query === '') {
    throw new SluiceError('CONFIG_INVALID', 'apiKey: the key is in a header or in the query; name one of them.')
  }
  const place = placeOf(header, query)
  return {
    scheme: 'apiKey',
    secrets: (query === undefined ? headerSecretsOf : secretsOf)('apiKey', options.secret),
    dedupeFor: '30d',
    verify: (request, { secrets }) => credentialsFault(place.name, place.in(request), secrets),
    sender: { proof: place.proof, ...typeAt(options) },
    events: eventsNamedBy('apiKey', options),
    ...(answer !== undefined && { answer }),
  }
}

interface Place {
  readonly name: string
  readonly in: (request: ReceivedRequest) => string | undefined
  readonly proof: SenderProof
}

function placeOf(header: string = DEFAULT_HEADER, query: string | undefined): Place {
  if (query === undefined) {
    const name = header.toLowerCase()
    return { name: `${header} header`, in: ({ headers }) => headers[name], proof: { kind: 'header', header: name } }
  }
  return {
    name: `${query} in the query`,
    in: ({ url }) => url.searchParams.get(query) ?? undefined,
    proof: { kind: 'query', name: query },
  }
}
