// Who did what, and when: every act of an operator, in a chain of hashes, so that a changed or missing entry shows.
import type { Millis } from '../clock.ts'
import { AUDIT_HEAD, chainOf, headOf, type AuditHead } from '../model/audit-chain.ts'
import type { AuditRecord, FindReply, Store } from '../store/contract/index.ts'
import type { Page } from './lanes.ts'

/** Where the chain is broken, or that it is whole. */
export type Verified =
  /** `head`: of the newest entry. Whoever keeps its chain elsewhere can ask later whether it is still in the log. */
  | { readonly kind: 'whole'; readonly entries: number; readonly head?: AuditHead }
  | { readonly kind: 'broken'; readonly why: Broken; readonly at: number; readonly entries: number }

/** `changed`: the entry, or one before it; `cut`: it and what came after are gone; `unknown`: what was asked for is not in it. */
type Broken = 'changed' | 'cut' | 'unknown'

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

  async write(who: string, what: string): Promise<void> {
    const store = await this.#store()
    await store.writeDocs({ writes: [], raiseRoutes: false, audit: { who, what } })
  }

  /** Newest first. */
  async list(filter: AuditFilter = {}, cursor = '', n = 100): Promise<Page<AuditRecord>> {
    const store = await this.#store()
    const { items, next } = await store.find({ kind: 'audit', filter, cursor, n })
    return { items, next }
  }

  /** Walks the whole chain from its beginning. `known`: the chain of an entry that was its head once, '' for none. */
  async verify(known = ''): Promise<Verified> {
    const store = await this.#store()
    // First: what is written while it is walked comes after.
    const newest = await head(store)
    let before: AuditRecord | undefined
    let entries = 0
    const unseen = new Set([known, newest?.chain ?? ''])
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: FindReply<'audit'> = await store.find({ ...ALL, cursor })
      for (const entry of page.items) {
        entries++
        if (entry.chain !== chainOf(before?.chain ?? '', entry)) {
          return { kind: 'broken', why: 'changed', at: entry.id, entries }
        }
        unseen.delete(entry.chain)
        before = entry
      }
      cursor = page.next
    }
    if (newest !== undefined && unseen.has(newest.chain)) {
      return { kind: 'broken', why: 'cut', at: (before?.id ?? 0) + 1, entries }
    }
    if (known !== '' && unseen.has(known)) return { kind: 'broken', why: 'unknown', at: 0, entries }
    if (before === undefined) return { kind: 'whole', entries }
    // Entries without a head: somebody removed it, for the two are written together.
    if (newest === undefined && (await head(store)) === undefined) {
      return { kind: 'broken', why: 'cut', at: before.id + 1, entries }
    }
    return { kind: 'whole', entries, head: { id: before.id, chain: before.chain } }
  }
}

const ALL = { kind: 'audit', filter: {}, n: PAGE, oldestFirst: true } as const

async function head(store: Store): Promise<AuditHead | undefined> {
  const { docs } = await store.readDocs({ kind: AUDIT_HEAD.kind, ids: [AUDIT_HEAD.id], after: '', n: 1 })
  return headOf(docs[0])
}
