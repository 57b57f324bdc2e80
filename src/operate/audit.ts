// Who did what, and when: every act of an operator, in a chain of hashes, so that a changed or missing entry shows.
import type { Millis } from '../clock.ts'
import { chainOf } from '../model/audit-chain.ts'
import type { AuditRecord, FindReply, Store } from '../store/contract/index.ts'
import type { Page } from './lanes.ts'

/** Where the chain is broken, or that it is whole. */
export type Verified =
  | { readonly kind: 'whole'; readonly entries: number }
  | { readonly kind: 'broken'; readonly at: number; readonly entries: number }

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

  /** Before the act: what is done is in the log, whatever becomes of the process meanwhile. */
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

  /** Walks the whole chain from its beginning. */
  async verify(): Promise<Verified> {
    const store = await this.#store()
    let before: AuditRecord | undefined
    let entries = 0
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: FindReply<'audit'> = await store.find({
        kind: 'audit',
        filter: {},
        cursor,
        n: PAGE,
        oldestFirst: true,
      })
      for (const entry of page.items) {
        entries++
        if (entry.chain !== chainOf(before?.chain ?? '', entry)) return { kind: 'broken', at: entry.id, entries }
        before = entry
      }
      cursor = page.next
    }
    return { kind: 'whole', entries }
  }
}
