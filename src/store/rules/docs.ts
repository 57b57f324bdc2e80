// Documents with revisions, and the audit trail that is written in the same commit (L18).
import { chainOf } from '../../model/audit-chain.ts'
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
    if (rev !== write.ifRev) return { kind: 'conflict', at, rev }
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

/** Each entry carries the hash of itself and the one before: a changed or missing one shows. */
function audit(work: Work, act: { readonly who: string; readonly what: string }): void {
  const last = work.tables.docs.lastAudit()
  const entry = { id: (last?.id ?? 0) + 1, at: work.now, who: act.who, what: act.what }
  work.tables.docs.addAudit({ ...entry, chain: chainOf(last?.chain ?? '', entry) })
}
