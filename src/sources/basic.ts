// Basic authentication: a user name and a password with each request. It proves who sends, not what.
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { Source, SourceAnswer } from '../receive/source.ts'
import { authorizationOf, credentialsFault } from './credentials.ts'
import { eventsNamedBy, NAMING, typeAt, type NamingOptions } from './named-by.ts'
import { secretsOf } from './signature.ts'

export interface BasicOptions extends NamingOptions {
  readonly username: string
  /** The password. */
  readonly secret: string | readonly string[]
  readonly answer?: SourceAnswer
}

const KNOWN: ReadonlySet<string> = new Set<keyof BasicOptions>(['username', 'secret', 'answer', ...NAMING])

export function basic(options: BasicOptions): Source {
  onlyKnown(options, KNOWN, 'basic: ')
  const { username, answer } = options
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    throw new SluiceError('CONFIG_INVALID', 'basic: username is missing, or has a colon, which ends it on the wire.')
  }
  return {
    scheme: 'basic',
    secrets: secretsOf('basic', options.secret),
    dedupeFor: '30d',
    verify: ({ headers }, { secrets }) => {
      const wanted = secrets.map((secret) => Buffer.from(`${username}:${secret}`).toString('base64'))
      return credentialsFault('authorization header of kind Basic', authorizationOf(headers, 'basic'), wanted)
    },
    sender: { proof: { kind: 'basic', username }, ...typeAt(options) },
    events: eventsNamedBy('basic', options),
    ...(answer !== undefined && { answer }),
  }
}
