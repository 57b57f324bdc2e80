// `schemaOf` and `unknownAddress` check the address of a store. It may hold a password, so errors never quote a part that could be
// one.
import { SluiceError } from '../errors.ts'

export const POSTGRES: RegExp = /^postgres(?:ql)?:\/\//

const ENCODE =
  'Encode the user and the password with encodeURIComponent, because / ? # @ : and % have a meaning of their own. Example: postgres://user:password@host:5432/database.'
const SCHEME = /^([a-z][a-z0-9+.-]{0,19}):/i
const LONGEST_SHOWN = 100

/** `unknownAddress` is the error for an address that names no store. */
export function unknownAddress(address: string): SluiceError {
  return new SluiceError('STORE_UNKNOWN', whatIsWrong(address))
}

function whatIsWrong(address: string): string {
  const scheme = SCHEME.exec(address)?.[1]
  if (scheme !== undefined)
    return `The store address must be memory:, sqlite:<file> or postgres://…; got one that begins with "${scheme}:".`
  if (address.includes('@') || address.length > LONGEST_SHOWN)
    return 'The store address must be memory:, sqlite:<file> or postgres://…; got one without a scheme.'
  return `The store address must be memory:, sqlite:<file> or postgres://…; got ${JSON.stringify(address)}.`
}

/** `isServerAddress` returns whether the path after `sqlite:` is an address with a user or a host. */
export function isServerAddress(file: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(file) || /\/\/[^/]*@/.test(file)
}

/**
 * `schemaOf` returns the schema that the address of a PostgreSQL server names with `?schema=`. It throws if the address is cut
 * at a character of the password: the driver would take the rest for a host or a database, and name it in its errors.
 */
export function schemaOf(address: string): string | undefined {
  const rest = address.replace(POSTGRES, '')
  const authority = /^[^/?#]*/.exec(rest)?.[0] ?? ''
  const [user, host] = [authority.slice(0, Math.max(0, authority.lastIndexOf('@'))), authority.split('@').at(-1) ?? '']
  const isCut = rest.includes('#') || rest.slice(authority.length).includes('@')
  if (isCut || !isHost(host) || !isEncoded(user))
    throw misread('it is cut at a character of its user or password, or has no valid host or port')
  const named = /[?&]schema=([^&]+)/.exec(rest)?.[1]
  if (named !== undefined && !isEncoded(named)) throw misread('its schema is not percent-encoded')
  return named === undefined ? undefined : decodeURIComponent(named)
}

/** The host may be empty (a socket), and the port must be a number up to 65535. */
function isHost(host: string): boolean {
  const port = /^(?:\[[\da-f:.]+\]|[^:\s]*)(?::(\d*))?$/i.exec(host)
  return port !== null && Number(port[1] ?? 0) <= 65_535
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function misread(why: string): SluiceError {
  return new SluiceError(
    'STORE_UNKNOWN',
    `The address of the PostgreSQL server must be a URL; ${why}.`,
    undefined,
    ENCODE,
  )
}
