// How entries of the audit log hang together: each carries the hash of itself and of the one before.
import { hash } from 'node:crypto'

export interface AuditEntry {
  readonly id: number
  readonly at: number
  readonly who: string
  readonly what: string
}

/** The newest entry, as a document that the store writes with it: without its last entries the chain would look whole. */
export const AUDIT_HEAD = { kind: 'audit-head', id: 'head' } as const

export interface AuditHead {
  readonly id: number
  readonly chain: string
}

export function headOf(doc: { readonly body: Uint8Array } | undefined): AuditHead | undefined {
  return doc === undefined ? undefined : (JSON.parse(Buffer.from(doc.body).toString()) as AuditHead)
}

/** `before`: the chain of the entry before, '' for the first. */
export function chainOf(before: string, { id, at, who, what }: AuditEntry): string {
  return hash('sha256', JSON.stringify([before, id, at, who, what]), 'base64url')
}
