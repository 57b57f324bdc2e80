// Maps the errors of a Redis server and its client to the error codes of Sluice.
import { SluiceError } from '../../errors.ts'

/** The codes with which the server begins its errors. */
const REFUSED = /^(?:NOAUTH|WRONGPASS|NOPERM|ERR invalid password|ERR AUTH)/
const SERVER_ERROR = /^[A-Z]+ /

export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('OOM ')
}

export function toSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const what = error instanceof Error ? error.message : String(error)
  if (REFUSED.test(what)) return new SluiceError('STORE_REFUSED', `${what}.`, error, CREDENTIALS)
  // A fault of Sluice, or an error of the server other than that it is loading its data or has become a replica.
  const isFault = error instanceof TypeError || error instanceof RangeError
  if (isFault || (SERVER_ERROR.test(what) && !UNAVAILABLE.test(what)))
    return new SluiceError('STORE_FAILED', `${what}.`, error)
  return new SluiceError('STORE_UNREACHABLE', `${what === '' ? 'The connection was refused' : what}.`, error)
}

const UNAVAILABLE = /^(?:LOADING|MASTERDOWN|READONLY|CLUSTERDOWN|TRYAGAIN|MISCONF|NOREPLICAS|BUSY)/
const CREDENTIALS = 'Check the user and the password of the address. The user needs the commands of docs/redis.md.'
