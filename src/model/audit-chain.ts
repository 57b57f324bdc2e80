// `computeChainHash` links the entries of the audit log: each entry carries the hash of itself and of the one before.
import { hash } from 'node:crypto'

export interface AuditEntry {
  readonly id: number
  readonly at: number
  readonly who: string
  readonly what: string
}

/**
 * `AUDIT_HEAD` is the document with the newest entry, which the store writes with that entry. Without it, a log whose last entries
 * were removed would look complete.
 */
export const AUDIT_HEAD = { kind: 'audit-head', id: 'head' } as const

export interface AuditHead {
  readonly id: number
  readonly chain: string
}

export function parseAuditHead(doc: { readonly body: Uint8Array } | undefined): AuditHead | undefined {
  return doc === undefined ? undefined : (JSON.parse(Buffer.from(doc.body).toString()) as AuditHead)
}

/** `computeChainHash` returns the hash of an entry. `before` is the hash of the previous entry, '' for the first. */
export function computeChainHash(before: string, { id, at, who, what }: AuditEntry): string {
  return hash('sha256', JSON.stringify([before, id, at, who, what]), 'base64url')
}
