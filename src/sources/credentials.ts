// This file holds what basic, bearer and API keys share: a secret that is sent as it is, compared without revealing its
// length.
import { SluiceError } from '../errors.ts'
import type { Refusal } from '../receive/source.ts'
import { isSameSecret, refusal, parseSecrets } from './signature.ts'

/** `where` is what the sender should have set; `given` is the value that arrived there. */
export function credentialsFault(
  where: string,
  given: string | undefined,
  wanted: readonly string[],
): Refusal | undefined {
  if (given === undefined) {
    return refusal('CREDENTIALS_MISSING', `There is no ${where}.`, 'Check that it is set at the sender.')
  }
  return isSameSecret(given, wanted) ? undefined : WRONG_CREDENTIALS
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
export function parseBearerSecrets(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
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
    'must be ASCII without leading or trailing space (a bearer token: without any space), because headers change the rest.'
  throw new SluiceError('CONFIG_INVALID', `${scheme}: ${option} ${why}`)
}
