// A bearer token in the authorization header. It proves who sends, not what.
import { onlyKnown } from '../model/options.ts'
import type { Source, SourceAnswer } from '../receive/source.ts'
import { authorizationOf, bearerSecretsOf, credentialsFault } from './credentials.ts'
import { eventsNamedBy, NAMING, typeAt, type NamingOptions } from './named-by.ts'

export interface BearerOptions extends NamingOptions {
  /** The token. */
  readonly secret: string | readonly string[]
  readonly answer?: SourceAnswer
}

const KNOWN: ReadonlySet<string> = new Set<keyof BearerOptions>(['secret', 'answer', ...NAMING])

export function bearer(options: BearerOptions): Source {
  onlyKnown(options, KNOWN, 'bearer: ')
  const { answer } = options
  return {
    scheme: 'bearer',
    secrets: bearerSecretsOf('bearer', options.secret),
    dedupeFor: '30d',
    verify: ({ headers }, { secrets }) =>
      credentialsFault('authorization header of kind Bearer', authorizationOf(headers, 'bearer'), secrets),
    sender: { proof: { kind: 'bearer' }, ...typeAt(options) },
    events: eventsNamedBy('bearer', options),
    ...(answer !== undefined && { answer }),
  }
}
