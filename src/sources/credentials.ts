// What basic, bearer and API keys have in common: a secret that is sent as it is, compared without telling its length.
import { SluiceError } from '../errors.ts'
import type { Refusal } from '../receive/source.ts'
import { isSameSecret, refusal, secretsOf } from './signature.ts'

/** `where` is what the sender should have set; `given` what came there. */
export function credentialsFault(
  where: string,
  given: string | undefined,
  wanted: readonly string[],
): Refusal | undefined {
  if (given === undefined) {
    return refusal('CREDENTIALS_MISSING', `There is no ${where}.`, 'Look whether it is set on the sending side.')
  }
  return isSameSecret(given, wanted) ? undefined : WRONG
}

const WRONG: Refusal = refusal(
  'CREDENTIALS_WRONG',
  'The credentials are not those of the source.',
  'Compare them with those that are set on the sending side.',
)

/** What follows the scheme in an authorization header, if it is this scheme. */
export function authorizationOf(headers: Readonly<Record<string, string>>, scheme: string): string | undefined {
  const [, name = '', value] = /^(\S+) +(\S+) *$/.exec(headers['authorization'] ?? '') ?? []
  return name.toLowerCase() === scheme ? value : undefined
}

/** Of a secret that is sent in a header: space around it does not arrive, and letters beyond ASCII arrive as others. */
export function headerSecretsOf(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  return sendable(scheme, secretsOf(scheme, secret, option), /^[!-~](?:[ -~]*[!-~])?$/, option)
}

/** Of one that stands behind the scheme in an authorization header: it ends at the first space. */
export function bearerSecretsOf(scheme: string, secret: unknown, option = 'secret'): readonly string[] {
  return sendable(scheme, secretsOf(scheme, secret, option), /^[!-~]+$/, option)
}

function sendable(scheme: string, secrets: readonly string[], pattern: RegExp, option: string): readonly string[] {
  if (secrets.every((secret) => pattern.test(secret))) return secrets
  const why = 'has letters that no header brings here as they are: it is ASCII, without space where it would be lost.'
  throw new SluiceError('CONFIG_INVALID', `${scheme}: ${option} ${why}`)
}
