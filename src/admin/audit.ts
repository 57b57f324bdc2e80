// `Audit` reads the log of operator actions: who did what, and when. The entries form a chain of hashes, so a changed
// or missing entry is detected.
import type { Millis } from '../clock.ts'
import { AUDIT_HEAD, computeChainHash, parseAuditHead, type AuditHead } from '../store/contract/records.ts'
import type { AuditRecord, Store } from '../store/contract/index.ts'
import { findPages, type Page } from './pages.ts'

/** Whether the chain is whole, or where it is broken. */
export type AuditVerification =
  /** `head` is the newest entry. With its hash stored elsewhere, a later check can tell that it is still in the log. */
  | { readonly kind: 'whole'; readonly entries: number; readonly head?: AuditHead }
  | { readonly kind: 'broken'; readonly why: AuditBreak; readonly at: number; readonly entries: number }

/**
 * `changed`: this entry, or one before it, was changed. `cut`: it and the later entries are missing. `unknown`: the
 * given head is not in the log.
 */
type AuditBreak = 'changed' | 'cut' | 'unknown'

export interface AuditFilter {
  readonly from?: Millis
  readonly to?: Millis
}

const PAGE = 500

export class Audit {
  readonly #store: () => Promise<Store>

  constructor(store: () => Promise<Store>) {
    this.#store = store
  }

  async write(who: string, message: string): Promise<void> {
    const store = await this.#store()
    await store.writeDocs({ writes: [], raiseRoutes: false, audit: { who, what: message } })
  }

  /** `list` returns the newest entry first. */
  async list(filter: AuditFilter = {}, cursor = '', n = 100): Promise<Page<AuditRecord>> {
    const store = await this.#store()
    const { items, next } = await store.find({ kind: 'audit', filter, cursor, n })
    return { items, next }
  }

  /** `verify` walks the whole chain. `known` is the hash of an entry that was once the head; '' skips that check. */
  async verify(known = ''): Promise<AuditVerification> {
    const store = await this.#store()
    // The head is read first, so entries that are written during the walk come after it.
    const newest = await readHead(store)
    let before: AuditRecord | undefined
    let entries = 0
    const unseen = new Set([known, newest?.chain ?? ''])
    for await (const page of findPages(store, ALL_ENTRIES)) {
      for (const entry of page) {
        entries++
        if (entry.chain !== computeChainHash(before?.chain ?? '', entry)) {
          return { kind: 'broken', why: 'changed', at: entry.id, entries }
        }
        unseen.delete(entry.chain)
        before = entry
      }
    }
    if (newest !== undefined && unseen.has(newest.chain)) {
      return { kind: 'broken', why: 'cut', at: (before?.id ?? 0) + 1, entries }
    }
    if (known !== '' && unseen.has(known)) return { kind: 'broken', why: 'unknown', at: 0, entries }
    if (before === undefined) return { kind: 'whole', entries }
    // An entry and its head are written together, so entries without a head mean that somebody removed it.
    if (newest === undefined && (await readHead(store)) === undefined) {
      return { kind: 'broken', why: 'cut', at: before.id + 1, entries }
    }
    return { kind: 'whole', entries, head: { id: before.id, chain: before.chain } }
  }
}

const ALL_ENTRIES = { kind: 'audit', filter: {}, n: PAGE, oldestFirst: true } as const

async function readHead(store: Store): Promise<AuditHead | undefined> {
  const { docs } = await store.readDocs({ kind: AUDIT_HEAD.kind, ids: [AUDIT_HEAD.id], after: '', n: 1 })
  return parseAuditHead(docs[0])
}
