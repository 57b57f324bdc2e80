// `basic` verifies Basic authentication: a user name and a password with each request. They prove who sends, not what.
import { SluiceError } from '../errors.ts'
import { assertKnownOptions } from '../validate/options.ts'
import type { Source, SourceResponse } from '../receive/source.ts'
import { parseAuthorization, credentialsFault } from './credentials.ts'
import { createNamedEventParser, NAMING_OPTIONS, type NamingOptions } from './event-names.ts'
import { signNamed } from './sign.ts'
import { parseSecrets } from './signature.ts'

export interface BasicOptions extends NamingOptions {
  readonly username: string
  /** The password. */
  readonly secret: string | readonly string[]
  readonly answer?: SourceResponse
}

const KNOWN: ReadonlySet<string> = new Set<keyof BasicOptions>(['username', 'secret', 'answer', ...NAMING_OPTIONS])

export function basic(options: BasicOptions): Source {
  assertKnownOptions(options, KNOWN, 'basic: ')
  const { username, answer } = options
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    throw new SluiceError(
      'CONFIG_INVALID',
      'basic: username must be a text without a colon, which would end it in the header.',
    )
  }
  return {
    scheme: 'basic',
    secrets: parseSecrets('basic', options.secret),
    dedupeFor: '30d',
    verify: ({ headers }, { secrets }) => {
      const wanted = secrets.map((secret) => Buffer.from(`${username}:${secret}`).toString('base64'))
      return credentialsFault('authorization header of kind Basic', parseAuthorization(headers, 'basic'), wanted)
    },
    events: createNamedEventParser('basic', options),
    sign: (asked) => {
      const credentials = Buffer.from(`${username}:${asked.secret}`).toString('base64')
      return signNamed(asked, options, { authorization: `Basic ${credentials}` })
    },
    ...(answer !== undefined && { answer }),
  }
}
