// Documents with revisions, and the audit trail that is written in the same commit (L18).
import { AUDIT_HEAD, chainOf, headOf, type AuditHead } from '../../model/audit-chain.ts'
import type { WriteDocsCall } from '../contract/index.ts'
import type { Work } from './work.ts'

export type Written =
  | { readonly kind: 'written'; readonly revs: readonly number[] }
  | { readonly kind: 'conflict'; readonly at: number; readonly rev: number }

/** All or none. */
export function writeDocs(work: Work, call: WriteDocsCall): Written {
  const { docs } = work.tables
  for (const [at, write] of call.writes.entries()) {
    const rev = docs.get(write.kind, write.id)?.rev ?? 0
    if (rev !== write.ifRev || write.kind === AUDIT_HEAD.kind) return { kind: 'conflict', at, rev }
  }
  const revs = call.writes.map(({ kind, id, body }) => {
    const rev = work.draw()
    if (body === undefined) docs.remove(kind, id)
    else docs.put({ kind, id, rev, body })
    return rev
  })
  if (call.raiseRoutes) {
    work.tables.raiseRoutes()
    work.hint({ kind: 'routes' })
  }
  if (call.audit !== undefined) audit(work, call.audit)
  return { kind: 'written', revs }
}

/** Each entry carries the hash of itself and the one before: a changed or missing one shows, the newest by the head. */
function audit(work: Work, { who, what }: { readonly who: string; readonly what: string }): void {
  const { docs } = work.tables
  const { kind, id: name } = AUDIT_HEAD
  const head = headOf(docs.get(kind, name))
  // Where somebody removed the head as well, the number is free and the chain begins anew: that shows.
  const entry = { id: Math.max(head?.id ?? 0, docs.lastAudit()?.id ?? 0) + 1, at: work.now, who, what }
  const next: AuditHead = { id: entry.id, chain: chainOf(head?.chain ?? '', entry) }
  docs.addAudit({ ...entry, chain: next.chain })
  docs.put({ kind, id: name, rev: work.draw(), body: Buffer.from(JSON.stringify(next)) })
}
