// `bearer` verifies a bearer token in the authorization header. The token proves who sends, not what.
import { assertKnownOptions } from '../validate/options.ts'
import type { Source, SourceResponse } from '../receive/source.ts'
import { parseAuthorization, parseBearerSecrets, credentialsFault } from './credentials.ts'
import { createNamedEventParser, NAMING_OPTIONS, type NamingOptions } from './event-names.ts'
import { signNamed } from './sign.ts'

export interface BearerOptions extends NamingOptions {
  /** The token. */
  readonly secret: string | readonly string[]
  readonly answer?: SourceResponse
}

const KNOWN: ReadonlySet<string> = new Set<keyof BearerOptions>(['secret', 'answer', ...NAMING_OPTIONS])

export function bearer(options: BearerOptions): Source {
  assertKnownOptions(options, KNOWN, 'bearer: ')
  const { answer } = options
  return {
    scheme: 'bearer',
    secrets: parseBearerSecrets('bearer', options.secret),
    dedupeFor: '30d',
    verify: ({ headers }, { secrets }) =>
      credentialsFault('authorization header of kind Bearer', parseAuthorization(headers, 'bearer'), secrets),
    events: createNamedEventParser('bearer', options),
    sign: (asked) => signNamed(asked, options, { authorization: `Bearer ${asked.secret}` }),
    ...(answer !== undefined && { answer }),
  }
}
