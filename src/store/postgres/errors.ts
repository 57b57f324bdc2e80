// Maps the errors of a PostgreSQL server to the error codes of Sluice.
import { SluiceError, type ErrorCode } from '../../errors.ts'

/**
 * The SQLSTATEs after which a transaction runs again: deadlock, serialization failure, and a row that another transaction has
 * just inserted.
 */
const CONFLICTS: ReadonlySet<string> = new Set(['40P01', '40001', '23505'])

interface ErrorMeaning {
  readonly code: ErrorCode
  /** If omitted, the default fix of the error code applies. */
  readonly fix?: string
}

/** The Sluice error for each SQLSTATE. */
const MEANINGS: Readonly<Record<string, ErrorMeaning>> = {
  // Disk full, out of memory, too many connections.
  '53100': { code: 'STORE_FULL', fix: 'Free disk space on the server; what was acknowledged is kept.' },
  '53200': { code: 'STORE_FULL', fix: 'Give the server more memory; what was acknowledged is kept.' },
  '53300': {
    code: 'STORE_UNREACHABLE',
    fix: 'Raise max_connections of the server, or lower the connections of each process.',
  },
  // Insufficient privilege.
  '42501': {
    code: 'STORE_UNWRITABLE',
    fix: 'Give the role of the address the right to the schema, or connect as its owner (docs/postgres.md).',
  },
  // A user without the right to connect, a wrong password, or a missing database.
  '28000': { code: 'STORE_REFUSED' },
  '28P01': { code: 'STORE_REFUSED' },
  '3D000': { code: 'STORE_REFUSED' },
  // A prepared statement that already exists, or no longer exists: this is not the session that prepared it.
  '42P05': { code: 'STORE_POOLER_UNSUPPORTED' },
  '26000': { code: 'STORE_POOLER_UNSUPPORTED' },
}

export function isConflict(error: unknown): boolean {
  return CONFLICTS.has(getErrorCode(error))
}

/** `isLockNotAvailable` returns whether another transaction holds the row and the statement was not allowed to wait. */
export function isLockNotAvailable(error: unknown): boolean {
  return getErrorCode(error) === '55P03'
}

/**
 * `isReadOnly` returns whether the server is a standby or rejects writes for now. The session stays read-only, even if a new
 * session would not be.
 */
export function isReadOnly(error: unknown): boolean {
  return getErrorCode(error) === '25006'
}

/** A SQLSTATE has five characters, at least one of them a digit. System codes such as EPIPE have no digit. */
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/

/**
 * `isServerRejection` returns whether the server rejected the statement. After any other error, the statement may not have
 * reached the server.
 */
export function isServerRejection(error: unknown): boolean {
  const code = getErrorCode(error)
  return SQLSTATE.test(code) && !code.startsWith('57') && !code.startsWith('08') && !isReadOnly(error)
}

export function toSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const code = getErrorCode(error)
  const what = error instanceof Error ? error.message : String(error)
  const meaning = MEANINGS[code]
  if (meaning !== undefined) return new SluiceError(meaning.code, `${what}.`, error, meaning.fix)
  // A fault of Sluice, not of the server.
  if (error instanceof TypeError || error instanceof RangeError)
    return new SluiceError('STORE_FAILED', `${what}.`, error)
  if (isServerRejection(error)) return new SluiceError('STORE_FAILED', `${what}.`, error)
  return new SluiceError('STORE_UNREACHABLE', `${what}.`, error)
}

function getErrorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}
