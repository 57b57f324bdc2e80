// Tests which error a caller sees. Whether the server rejected a statement or was unreachable decides what may be repeated.
import { describe, expect, it } from 'vitest'
import { toSluiceError, isServerRejection } from '../../src/store/postgres/errors.ts'

function failed(code: string): Error {
  return Object.assign(new Error(`failed with ${code}`), { code })
}

describe('errors of PostgreSQL', () => {
  // EPIPE and EBADF have five letters, like the server's SQLSTATEs have five characters.
  it.each(['EPIPE', 'EBADF', 'ECONNRESET', 'ETIMEDOUT', '57P01', '08006'])(
    '%s means that the server was not reached',
    (code) => {
      expect(toSluiceError(failed(code)).code).toBe('STORE_UNREACHABLE')
      expect(isServerRejection(failed(code))).toBe(false)
    },
  )

  it.each(['22P02', '23505', '42703', '55P03', 'P0001', 'SL001', 'XX000'])(
    '%s means that the server rejected the call',
    (code) => {
      expect(isServerRejection(failed(code))).toBe(true)
    },
  )

  it.each(['42P05', '26000'])('%s: a statement that was prepared in another session reveals a pooler', (code) => {
    expect(toSluiceError(failed(code)).code).toBe('STORE_POOLER_UNSUPPORTED')
  })
})
