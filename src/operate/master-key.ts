// The master key, exchanged: all that is sealed under an older one is sealed anew, page by page, each in one commit. Whoever is
// killed over it begins again: both keys open until the end, and what is done is known by its key.
import { DATA_KEY_DOCS } from '../data-keys.ts'
import { ENDPOINT_DOCS } from '../deliver/confidential.ts'
import { SluiceError } from '../errors.ts'
import { REFUSED_DOCS } from '../receive/refused-docs.ts'
import { SOURCE_SECRET_DOCS } from '../receive/source-secrets.ts'
import { HOW_TO_GIVE_A_KEY, type Seal, type SealedDocs } from '../seal.ts'
import type { Doc, Store } from '../store/contract/index.ts'

export interface MasterKeyState {
  /** Tells keys apart, and nothing of them. '' without one. */
  readonly key: string
  /** How many documents are looked at. */
  readonly documents: number
  /** Sealed under an older key that is at hand. */
  readonly older: number
  /** Sealed under none that is at hand: `endpoint ep_…`, the first of them. */
  readonly unreadable: readonly string[]
}

export interface RotatedPage {
  readonly looked: number
  readonly resealed: number
  readonly unreadable: readonly string[]
  /** Where the next page begins; undefined: that was all. */
  readonly next: string | undefined
}

export interface MasterKeyParts {
  readonly store: () => Promise<Store>
  readonly seal: Seal
}

type Looked =
  | { readonly kind: 'as-it-is' }
  | { readonly kind: 'older'; readonly body: Buffer }
  | { readonly kind: 'unreadable'; readonly name: string }

const ALL: readonly SealedDocs[] = [DATA_KEY_DOCS, SOURCE_SECRET_DOCS, ENDPOINT_DOCS, REFUSED_DOCS]
const PAGE = 200
const TRIES = 20
const MOST_NAMED = 100

export class MasterKey {
  readonly #parts: MasterKeyParts

  constructor(parts: MasterKeyParts) {
    this.#parts = parts
  }

  /** With `older` 0 and nothing unreadable, all keys but the first can be left out. */
  async state(): Promise<MasterKeyState> {
    const store = await this.#parts.store()
    const state = { documents: 0, older: 0, unreadable: [] as string[] }
    for (let cursor: Cursor | undefined = BEGIN; cursor !== undefined;) {
      const page: Page = await read(store, cursor)
      for (const looked of page.docs.map((doc) => this.#looked(page.of, doc))) {
        state.documents++
        if (looked.kind === 'older') state.older++
        if (looked.kind === 'unreadable') state.unreadable.push(looked.name)
      }
      cursor = page.next
    }
    return { key: this.#parts.seal.name, ...state, unreadable: state.unreadable.slice(0, MOST_NAMED) }
  }

  /** One page, from `after` on; the last one has no `next`. */
  async rotate({ after, by = '' }: { readonly after?: string; readonly by?: string } = {}): Promise<RotatedPage> {
    const { seal } = this.#parts
    if (!seal.hasKey) throw new SluiceError('NOT_POSSIBLE', `There is no master key: ${HOW_TO_GIVE_A_KEY}.`)
    const cursor = after === undefined ? BEGIN : cursorIn(after)
    const store = await this.#parts.store()
    for (let tries = 0; tries < TRIES; tries++) {
      const page = await read(store, cursor)
      const looked = page.docs.map((doc) => this.#looked(page.of, doc))
      const writes = looked.flatMap((one, at) => {
        const doc = page.docs[at]
        return one.kind !== 'older' || doc === undefined
          ? []
          : [{ kind: doc.kind, id: doc.id, ifRev: doc.rev, body: one.body }]
      })
      const what = `sealed ${writes.length} of ${page.of.kind} under the master key ${seal.name}`
      const call = { writes, raiseRoutes: false, audit: { who: by, what } }
      // Who changes one of them at this moment goes first: the page is read anew.
      if (writes.length > 0 && (await store.writeDocs(call)).kind === 'conflict') continue
      return {
        looked: page.docs.length,
        resealed: writes.length,
        unreadable: looked.flatMap((one) => (one.kind === 'unreadable' ? [one.name] : [])),
        next: page.next === undefined ? undefined : `${page.next.at}:${page.next.after}`,
      }
    }
    throw new SluiceError('NOT_POSSIBLE', 'Others change the same documents all the time; try again.')
  }

  #looked(of: SealedDocs, doc: Doc): Looked {
    try {
      const body = of.resealed(this.#parts.seal, doc)
      return body === undefined ? { kind: 'as-it-is' } : { kind: 'older', body }
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'SEAL_UNKNOWN')
        return { kind: 'unreadable', name: `${doc.kind} ${doc.id}` }
      throw error
    }
  }
}

/** Which kind, and after which of its documents. */
interface Cursor {
  readonly at: number
  readonly after: string
}

interface Page {
  readonly of: SealedDocs
  readonly docs: readonly Doc[]
  readonly next: Cursor | undefined
}

const BEGIN: Cursor = { at: 0, after: '' }

async function read(store: Store, { at, after }: Cursor): Promise<Page> {
  const of = ALL[at] as SealedDocs
  const { docs, next } = await store.readDocs({ kind: of.kind, ids: undefined, after, n: PAGE })
  if (next !== undefined) return { of, docs, next: { at, after: next } }
  return { of, docs, next: at + 1 < ALL.length ? { at: at + 1, after: '' } : undefined }
}

function cursorIn(text: string): Cursor {
  const [, at = '', after = ''] = /^(\d):(.*)$/su.exec(text) ?? []
  if (at !== '' && Number(at) < ALL.length) return { at: Number(at), after }
  throw new SluiceError('REQUEST_INVALID', 'after is none that a page has answered as next.')
}
