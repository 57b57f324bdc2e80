// The histories of endpoints in the store. Notes are added up in this process and written together every other second: a POST
// costs the store nothing more, and of a process that dies a moment's figures are missing, never a delivery.
import type { Clock, Millis } from '../clock.ts'
import type { Doc, Store } from '../store/contract/index.ts'
import { merged, NO_HISTORY, noted, type History, type PostNote } from './history.ts'

export interface HistoriesParts {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  /** Endpoints of these that were removed. */
  readonly gone: (ids: readonly string[]) => Promise<readonly string[]>
}

const KIND = 'endpoint-history'
const WRITTEN_AFTER: Millis = 2_000
const PAGE = 500
/** Many share a commit, but not so many that others wait for it. */
const WRITTEN_TOGETHER = 50
const TRIES = 5
const NOTES_KEPT = 500

export class Histories {
  readonly #parts: HistoriesParts
  /** As they come; added up now and then, for that costs more than to keep one more. */
  readonly #notes = new Map<string, PostNote[]>()
  readonly #unwritten = new Map<string, History>()
  #cancel: (() => void) | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(parts: HistoriesParts) {
    this.#parts = parts
  }

  note(id: string, note: PostNote): void {
    const notes = this.#notes.get(id) ?? []
    notes.push(note)
    this.#notes.set(id, notes)
    if (notes.length >= NOTES_KEPT) this.#addUp(id, notes)
    this.#cancel ??= this.#parts.clock.after(WRITTEN_AFTER, () => void this.write())
  }

  /** With what this process has not written yet. */
  async of(ids: readonly string[]): Promise<ReadonlyMap<string, History>> {
    await this.write()
    const docs = await this.#read(ids)
    return new Map(
      ids.map((id) => {
        const doc = docs.get(id)
        const written = doc === undefined ? NO_HISTORY : historyIn(doc)
        return [id, merged(written, this.#unwritten.get(id) ?? NO_HISTORY)]
      }),
    )
  }

  async forget(id: string): Promise<void> {
    this.#notes.delete(id)
    this.#unwritten.delete(id)
    const store = await this.#parts.store()
    for (let tries = 0; tries < TRIES; tries++) {
      const doc = (await this.#read([id])).get(id)
      if (doc === undefined) return
      const writes = [{ kind: KIND, id, ifRev: doc.rev, body: undefined }]
      if ((await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind === 'written') return
    }
  }

  /** Never fails: what could not be written is kept for the next time. */
  write(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    this.#writing = this.#writing.then(() => this.#writeAll()).catch(() => {})
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    for (const [id, notes] of this.#notes) this.#addUp(id, notes)
    const all = [...this.#unwritten]
    this.#unwritten.clear()
    let written = 0
    try {
      for (; written < all.length; written += WRITTEN_TOGETHER)
        await this.#write(all.slice(written, written + WRITTEN_TOGETHER))
    } finally {
      for (const [id, history] of all.slice(written)) this.#add(id, history)
    }
  }

  async #write(histories: readonly (readonly [id: string, History])[]): Promise<void> {
    const store = await this.#parts.store()
    for (let tries = 0; tries < TRIES; tries++) {
      const docs = await this.#read(histories.map(([id]) => id))
      const writes = histories.map(([id, history]) => {
        const doc = docs.get(id)
        const after = merged(doc === undefined ? NO_HISTORY : historyIn(doc), history)
        return { kind: KIND, id, ifRev: doc?.rev ?? 0, body: Buffer.from(JSON.stringify(after)) }
      })
      if ((await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind === 'written') {
        await this.#forgetGone(writes.filter(({ ifRev }) => ifRev === 0).map(({ id }) => id))
        return
      }
    }
    for (const [id, history] of histories) this.#add(id, history)
  }

  /** Who removes an endpoint forgets its history after that: one that was begun later is not known to them. */
  async #forgetGone(begun: readonly string[]): Promise<void> {
    if (begun.length === 0) return
    for (const id of await this.#parts.gone(begun)) await this.forget(id)
  }

  #addUp(id: string, notes: readonly PostNote[]): void {
    this.#notes.delete(id)
    this.#add(id, noted(NO_HISTORY, notes))
  }

  #add(id: string, history: History): void {
    this.#unwritten.set(id, merged(this.#unwritten.get(id) ?? NO_HISTORY, history))
  }

  async #read(ids: readonly string[]): Promise<ReadonlyMap<string, Doc>> {
    const store = await this.#parts.store()
    const docs = new Map<string, Doc>()
    for (let from = 0; from < ids.length; from += PAGE) {
      const some = ids.slice(from, from + PAGE)
      const reply = await store.readDocs({ kind: KIND, ids: some, after: '', n: some.length })
      for (const doc of reply.docs) docs.set(doc.id, doc)
    }
    return docs
  }
}

function historyIn(doc: Doc): History {
  return JSON.parse(Buffer.from(doc.body).toString()) as History
}
