// Calls a store whose backends are terminated, and repeats each call until there is a reply.
import { setTimeout } from 'node:timers/promises'
import type { Ledger } from './ledger.ts'

/** The only error that a terminated backend may cause. */
const LOST = 'STORE_UNREACHABLE'
const AGAIN_AFTER_MS = 20

/** Rejects every error that a terminated backend must not cause. */
export function noteError(ledger: Ledger, what: string, error: unknown): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code !== LOST) ledger.wrong.push(`${what} failed with ${code}: ${String(error)}`)
}

/** `failed` is called for each try without a reply. */
export async function untilAnswered<T>(
  ledger: Ledger,
  what: string,
  call: () => Promise<T>,
  failed: () => void = () => {},
): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      noteError(ledger, what, error)
      failed()
      await setTimeout(AGAIN_AFTER_MS)
    }
  }
}
