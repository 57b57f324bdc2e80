// `toSluiceError` maps errors of SQLite to the error codes of this package. No other file inspects SQLite errors.
import { SluiceError, type ErrorCode } from '../../errors.ts'

const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26
/** SQLite returns this code when the disk is full and the index of the log cannot grow. */
const SQLITE_IOERR_SHMSIZE = SQLITE_IOERR | (19 << 8)

const CODES: Readonly<Record<number, ErrorCode>> = {
  [SQLITE_BUSY]: 'STORE_IN_USE',
  [SQLITE_READONLY]: 'STORE_UNWRITABLE',
  [SQLITE_IOERR]: 'STORE_FAILED',
  [SQLITE_CORRUPT]: 'STORE_DAMAGED',
  [SQLITE_FULL]: 'STORE_FULL',
  [SQLITE_CANTOPEN]: 'STORE_UNWRITABLE',
  [SQLITE_NOTADB]: 'STORE_NOT_A_DATABASE',
  [SQLITE_IOERR_SHMSIZE]: 'STORE_FULL',
}

export function toSluiceError(error: unknown, file: string): SluiceError {
  if (error instanceof SluiceError) return error
  const number = typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0
  // The low byte of an extended code is the primary code.
  const code = CODES[number] ?? CODES[number & 0xff] ?? 'STORE_FAILED'
  const message = error instanceof Error ? error.message : String(error)
  return new SluiceError(code, `SQLite failed on ${file}: ${message}.`, error)
}
