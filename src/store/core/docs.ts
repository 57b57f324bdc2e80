// `writeDocs` stores documents with revisions, and the audit entry in the same commit (L18).
import { AUDIT_HEAD, computeChainHash, parseAuditHead, type AuditHead } from '../contract/records.ts'
import type { WriteDocsCall, WriteDocsReply } from '../contract/index.ts'
import type { CommitContext } from './commit-context.ts'
import type { ReplyBody } from './tables.ts'

/** `writeDocs` writes all documents or none. */
export function writeDocs(work: CommitContext, call: WriteDocsCall): ReplyBody<WriteDocsReply> {
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
    work.addHint({ kind: 'routes' })
  }
  if (call.audit !== undefined) appendAuditEntry(work, call.audit)
  return { kind: 'written', revs }
}

/**
 * Appends an entry with the hash of itself and of the one before. A changed or missing entry is therefore detectable, the newest
 * one by the head.
 */
function appendAuditEntry(work: CommitContext, { who, what }: { readonly who: string; readonly what: string }): void {
  const { docs } = work.tables
  const { kind, id: name } = AUDIT_HEAD
  const head = parseAuditHead(docs.get(kind, name))
  // If somebody removed the head as well, the number is free and the chain starts anew, which is detectable.
  const entry = { id: Math.max(head?.id ?? 0, docs.lastAudit()?.id ?? 0) + 1, at: work.now, who, what }
  const next: AuditHead = { id: entry.id, chain: computeChainHash(head?.chain ?? '', entry) }
  docs.addAudit({ ...entry, chain: next.chain })
  docs.put({ kind, id: name, rev: work.draw(), body: Buffer.from(JSON.stringify(next)) })
}
