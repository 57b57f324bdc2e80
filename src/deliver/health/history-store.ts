// `HistoryStore` stores the histories of endpoints. It collects notes in memory and writes them every two seconds, so
// a POST needs no write of its own. A process that dies loses two seconds of stats, but no delivery.
import type { Clock, Millis } from '../../clock.ts'
import { isEncryptedText, type EncryptedTexts } from '../../crypto/encrypted-texts.ts'
import { SluiceError } from '../../errors.ts'
import { PURGED_TEXT } from '../../model/steer.ts'
import type { Doc, Store } from '../../store/contract/index.ts'
import { changeDoc, parseDoc, readDocsById, toDocBody } from '../../store/documents.ts'
import type { EndpointDocs } from '../endpoint-docs.ts'
import { mergeHistories, NO_HISTORY, addNotes, type PostHistory, type PostNote } from './history.ts'

export interface HistoryStoreDependencies {
  readonly store: () => Promise<Store>
  readonly clock: Clock
  readonly docs: Pick<EndpointDocs, 'findMissing'>
  readonly texts: () => Promise<EncryptedTexts>
}

type HistoryChange = (texts: EncryptedTexts, answer: string, purpose: string) => string | Promise<string>

const KIND = 'endpoint-history'
const WRITE_DELAY: Millis = 2_000
/** Many histories share a commit, but not so many that other writers wait for it. */
const WRITE_BATCH = 50
const TRIES = 5
const MAX_NOTES = 500

export class HistoryStore {
  readonly #deps: HistoryStoreDependencies
  /** Notes as they arrive. They are folded together later, because folding each note costs more than keeping it. */
  readonly #notes = new Map<string, PostNote[]>()
  readonly #unwritten = new Map<string, PostHistory>()
  #cancel: (() => void) | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: HistoryStoreDependencies) {
    this.#deps = deps
  }

  note(id: string, note: PostNote): void {
    let notes = this.#notes.get(id)
    if (notes === undefined) this.#notes.set(id, (notes = []))
    notes.push(note)
    if (notes.length >= MAX_NOTES) this.#foldNotes(id, notes)
    this.#cancel ??= this.#deps.clock.after(WRITE_DELAY, () => void this.flush())
  }

  /** `getAll` includes what this process has not written yet. */
  async getAll(ids: readonly string[]): Promise<ReadonlyMap<string, PostHistory>> {
    await this.flush()
    const docs = await readDocsById(await this.#deps.store(), KIND, ids)
    const histories = ids.map(async (id) => {
      const history = mergeHistories(parseHistory(docs.get(id)), this.#unwritten.get(id) ?? NO_HISTORY)
      return [id, await this.#decrypted(id, history)] as const
    })
    return new Map(await Promise.all(histories))
  }

  /** `forgetAnswers` removes the endpoint's responses to these runs, also those that another process notes later. */
  async forgetAnswers(id: string, runs: readonly string[]): Promise<void> {
    if (runs.length === 0) return
    const purged: PostHistory = { ...NO_HISTORY, purged: runs }
    this.#mergeUnwritten(id, purged)
    for (let tries = 0; tries < TRIES; tries++) {
      if (await this.#tryToWrite([[id, purged]])) return
    }
    throw new SluiceError('CONFLICT', `Other processes keep changing the history of endpoint ${id}. Purge again.`)
  }

  async forget(id: string): Promise<void> {
    this.#notes.delete(id)
    this.#unwritten.delete(id)
    const what = { kind: KIND, id, title: `the history of endpoint ${id}` }
    await changeDoc(await this.#deps.store(), what, () => ({ body: undefined, result: undefined }))
  }

  /** `flush` never fails; what could not be written is kept for the next time. */
  flush(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    this.#writing = this.#writing.then(() => this.#writeAll()).catch(() => {})
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    for (const [id, notes] of this.#notes) this.#foldNotes(id, notes)
    const all = [...this.#unwritten]
    this.#unwritten.clear()
    let written = 0
    try {
      for (; written < all.length; written += WRITE_BATCH) await this.#write(all.slice(written, written + WRITE_BATCH))
    } finally {
      for (const [id, history] of all.slice(written)) this.#mergeUnwritten(id, history)
    }
  }

  async #write(histories: readonly (readonly [id: string, PostHistory])[]): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) if (await this.#tryToWrite(histories)) return
    for (const [id, history] of histories) this.#mergeUnwritten(id, history)
  }

  /** Returns false if another process has written one of the histories meanwhile. */
  async #tryToWrite(histories: readonly (readonly [id: string, PostHistory])[]): Promise<boolean> {
    const store = await this.#deps.store()
    const docs = await readDocsById(
      store,
      KIND,
      histories.map(([id]) => id),
    )
    const bodies = histories.map(async ([id, history]) => {
      const doc = docs.get(id)
      const after = await this.#encrypted(id, mergeHistories(parseHistory(doc), history))
      return { kind: KIND, id, ifRev: doc?.rev ?? 0, body: toDocBody(after) }
    })
    const writes = await Promise.all(bodies)
    if ((await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind !== 'written') return false
    const begun = writes.filter(({ ifRev }) => ifRev === 0).map(({ id }) => id)
    // `delete` forgets a history after it deletes the endpoint, so a history stored later is removed here.
    for (const id of begun.length === 0 ? [] : await this.#deps.docs.findMissing(begun)) await this.forget(id)
    return true
  }

  #encrypted(id: string, history: PostHistory): Promise<PostHistory> {
    return this.#changed(id, history, (texts, answer, purpose) =>
      isEncryptedText(answer) || answer === PURGED_TEXT ? answer : texts.encrypt(answer, purpose),
    )
  }

  #decrypted(id: string, history: PostHistory): Promise<PostHistory> {
    return this.#changed(id, history, (texts, answer, purpose) => texts.decrypt(answer, purpose))
  }

  async #changed(id: string, history: PostHistory, change: HistoryChange): Promise<PostHistory> {
    if (!history.attempts.some(({ confidential }) => confidential === true)) return history
    const texts = await this.#deps.texts()
    const attempts = history.attempts.map(async (attempt) => {
      if (attempt.confidential !== true) return attempt
      return { ...attempt, answer: await change(texts, attempt.answer, `answer of endpoint ${id}`) }
    })
    return { ...history, attempts: await Promise.all(attempts) }
  }

  #foldNotes(id: string, notes: readonly PostNote[]): void {
    this.#notes.delete(id)
    this.#unwritten.set(id, addNotes(this.#unwritten.get(id) ?? NO_HISTORY, notes))
  }

  #mergeUnwritten(id: string, history: PostHistory): void {
    this.#unwritten.set(id, mergeHistories(this.#unwritten.get(id) ?? NO_HISTORY, history))
  }
}

function parseHistory(doc: Doc | undefined): PostHistory {
  return doc === undefined ? NO_HISTORY : (parseDoc(doc) as PostHistory)
}
