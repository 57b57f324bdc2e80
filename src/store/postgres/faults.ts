// What can go wrong with a server, said in the words of the one catalogue.
import { SluiceError } from '../../errors.ts'

/** Deadlock, serialization, a row that somebody else has just made, or is not as it was. */
const CONFLICTS: ReadonlySet<string> = new Set(['40P01', '40001', '23505', 'SL001'])
const FULL: ReadonlySet<string> = new Set(['53100', '53200'])
const DENIED: ReadonlySet<string> = new Set(['42501', '28000', '28P01', '3D000'])

export function isConflict(error: unknown): boolean {
  return CONFLICTS.has(codeOf(error))
}

/** Somebody else has the row, and it was not to be waited for. */
export function isHeld(error: unknown): boolean {
  return codeOf(error) === '55P03'
}

/** A standby, or a server that takes no writes for now. The session stays so even where the next one would not be. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === '25006'
}

/** The server said no. A code of five characters is its own; anything else says that the right one could not be talked to. */
export function isRefusal(error: unknown): boolean {
  const code = codeOf(error)
  return /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('57') && !code.startsWith('08') && !isReadOnly(error)
}

export function fault(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const code = codeOf(error)
  const what = error instanceof Error ? error.message : String(error)
  if (FULL.has(code)) return new SluiceError('STORE_FULL', `${what}.`, error)
  if (DENIED.has(code)) return new SluiceError('STORE_UNWRITABLE', `${what}.`, error)
  // Ours, not the server's.
  if (error instanceof TypeError || error instanceof RangeError)
    return new SluiceError('STORE_FAILED', `${what}.`, error)
  if (isRefusal(error)) return new SluiceError('STORE_FAILED', `${what}.`, error)
  return new SluiceError('STORE_UNREACHABLE', `${what}.`, error)
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}
