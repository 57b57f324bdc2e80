// How entries of the audit log hang together: each carries the hash of itself and of the one before.
import { hash } from 'node:crypto'

export interface AuditEntry {
  readonly id: number
  readonly at: number
  readonly who: string
  readonly what: string
}

/** `before`: the chain of the entry before, '' for the first. */
export function chainOf(before: string, { id, at, who, what }: AuditEntry): string {
  return hash('sha256', JSON.stringify([before, id, at, who, what]), 'base64url')
}
