// `basic`, `bearer` and `apiKey` verify a secret that is sent as it is. It proves who sends, not what. `unverified` has no
// proof at all.
import type { ReceivedRequest, Refusal, SignedRequest, Source } from '../receive/source.ts'
import { assertKnownOptions, invalidOption } from '../validate/options.ts'
import { createNamedSource, NAMING_OPTIONS, signNamed, type NamedSourceOptions } from './event-names.ts'
import { isSameSecret, refusal, parseSecrets, type Secrets } from './signature.ts'

export interface BearerOptions extends NamedSourceOptions {
  /** The token. */
  readonly secret: Secrets
}

export function bearer(options: BearerOptions): Source {
  assertKnownOptions(options, ['secret', 'answer', ...NAMING_OPTIONS], 'bearer: ')
  return createNamedSource('bearer', options, {
    secrets: parseBearerSecrets('bearer', options.secret),
    verify: ({ headers }, { secrets }) =>
      credentialsFault('authorization header of kind Bearer', parseAuthorization(headers, 'bearer'), secrets),
    sign: (input) => signNamed(input, options, { authorization: `Bearer ${input.secret}` }),
  })
}

export interface BasicOptions extends NamedSourceOptions {
  readonly username: string
  /** The password. */
  readonly secret: Secrets
}

export function basic(options: BasicOptions): Source {
  assertKnownOptions(options, ['username', 'secret', 'answer', ...NAMING_OPTIONS], 'basic: ')
  const { username } = options
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    throw invalidOption('basic: username must be a text without a colon, which would end it in the header.')
  }
  const credentialsOf = (secret: string): string => Buffer.from(`${username}:${secret}`).toString('base64')
  return createNamedSource('basic', options, {
    secrets: parseSecrets('basic', options.secret),
    verify: ({ headers }, { secrets }) => {
      const wanted = secrets.map(credentialsOf)
      return credentialsFault('authorization header of kind Basic', parseAuthorization(headers, 'basic'), wanted)
    },
    sign: (input) => signNamed(input, options, { authorization: `Basic ${credentialsOf(input.secret)}` }),
  })
}

export interface ApiKeyOptions extends NamedSourceOptions {
  readonly secret: Secrets
  /** The default is `x-api-key`. */
  readonly header?: string
  /** A query parameter instead of a header. URLs end up in logs, so a header is better. */
  readonly query?: string
}

export function apiKey(options: ApiKeyOptions): Source {
  assertKnownOptions(options, ['secret', 'header', 'query', 'answer', ...NAMING_OPTIONS], 'apiKey: ')
  const { header, query } = options
  if ((header !== undefined && query !== undefined) || header === '' || query === '') {
    throw invalidOption('apiKey: set either header or query, and not to an empty text.')
  }
  const location = toKeyLocation(header, query)
  return createNamedSource('apiKey', options, {
    secrets: (query === undefined ? parseHeaderSecrets : parseSecrets)('apiKey', options.secret),
    verify: (request, { secrets }) => credentialsFault(location.name, location.read(request), secrets),
    sign: (input) => location.write(signNamed(input, options), input.secret),
  })
}

interface KeyLocation {
  readonly name: string
  readonly read: (request: ReceivedRequest) => string | undefined
  readonly write: (request: SignedRequest, key: string) => SignedRequest
}

function toKeyLocation(header: string = 'x-api-key', query: string | undefined): KeyLocation {
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

export interface UnverifiedOptions extends NamedSourceOptions {
  readonly verify: 'none'
}

/** `unverified` accepts requests without proof. It requires an explicit `verify: 'none'` (R3). */
export function unverified(options: UnverifiedOptions): Source {
  assertKnownOptions(options, ['verify', 'answer', ...NAMING_OPTIONS], 'unverified: ')
  const { verify } = options
  if (verify !== 'none') {
    throw invalidOption("unverified: verify must be 'none', because anyone who knows the URL can send.")
  }
  const sign: Source['sign'] = (input) => signNamed(input, options)
  return createNamedSource('unverified', options, { scheme: 'none', secrets: [], verify, sign })
}

/** `where` is what the sender should have set; `given` is the value that arrived there. */
export function credentialsFault(
  where: string,
  value: string | undefined,
  wanted: readonly string[],
): Refusal | undefined {
  if (value === undefined) {
    return refusal('CREDENTIALS_MISSING', `There is no ${where}.`, 'Check that it is set at the sender.')
  }
  return isSameSecret(value, wanted) ? undefined : WRONG_CREDENTIALS
}

const WRONG_CREDENTIALS: Refusal = refusal(
  'CREDENTIALS_WRONG',
  'The credentials are wrong.',
  'Compare them with those set at the sender.',
)

/** `parseAuthorization` returns the credentials of an authorization header, if it has this scheme. */
export function parseAuthorization(headers: Readonly<Record<string, string>>, scheme: string): string | undefined {
  const [, name = '', value] = /^(\S+) +(\S+) *$/.exec(headers['authorization'] ?? '') ?? []
  return name.toLowerCase() === scheme ? value : undefined
}

/** `parseHeaderSecrets` rejects secrets that a header changes: leading or trailing space is lost, and non-ASCII
    characters are altered. */
export function parseHeaderSecrets(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  return assertSendable(scheme, parseSecrets(scheme, secret, option), /^[!-~](?:[ -~]*[!-~])?$/, option)
}

/** `parseBearerSecrets` rejects secrets with a space, because credentials in an authorization header end at the
    first one. */
function parseBearerSecrets(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  return assertSendable(scheme, parseSecrets(scheme, secret, option), /^[!-~]+$/, option)
}

function assertSendable(
  scheme: string,
  secrets: readonly string[],
  pattern: RegExp,
  option: string,
): readonly string[] {
  if (secrets.every((secret) => pattern.test(secret))) return secrets
  const why =
    'must be ASCII without leading or trailing space (a bearer token: without any space), because headers change other text'
  throw invalidOption(`${scheme}: ${option} ${why}; got such text. Set another secret here and at the sender.`)
}
