// `Encryption` rotates the encryption key: it re-encrypts everything under an older key, page by page, each page in one
// commit. An interrupted rotation can start again, because both keys decrypt until the end and finished documents
// name their key.
import { DATA_KEY_DOCS } from '../crypto/data-keys.ts'
import { ENDPOINT_DOCS } from '../deliver/endpoint-secrets.ts'
import { SluiceError } from '../errors.ts'
import { REFUSED_DOCS } from '../receive/refused-docs.ts'
import { SOURCE_SECRET_DOCS } from '../receive/source-secrets.ts'
import { missingKey, type Keyring, type EncryptedDocs } from '../crypto/keyring.ts'
import type { Doc, Store } from '../store/contract/index.ts'

export interface EncryptionState {
  /** Identifies the key without revealing it; '' without a key. */
  readonly key: string
  readonly documents: number
  /** The number of documents under an older key that this process has. */
  readonly older: number
  /** The first documents under a key that this process does not have, e.g. `endpoint ep_…`. */
  readonly unreadable: readonly string[]
}

export interface RotationPage {
  readonly scanned: number
  readonly reencrypted: number
  readonly unreadable: readonly string[]
  /** Where the next page starts; undefined after the last page. */
  readonly next: string | undefined
}

export interface EncryptionDependencies {
  readonly store: () => Promise<Store>
  readonly keyring: Keyring
}

type DocumentStatus =
  | { readonly kind: 'as-it-is' }
  | { readonly kind: 'older'; readonly body: Buffer }
  | { readonly kind: 'unreadable'; readonly name: string }

const ENCRYPTED_KINDS: readonly EncryptedDocs[] = [DATA_KEY_DOCS, SOURCE_SECRET_DOCS, ENDPOINT_DOCS, REFUSED_DOCS]
const PAGE = 200
const MAX_WRITE_TRIES = 20
const MAX_NAMED = 100

export class Encryption {
  readonly #deps: EncryptionDependencies

  constructor(deps: EncryptionDependencies) {
    this.#deps = deps
  }

  /** `state` counts the documents per key. Once none is older or unreadable, only the first key is needed. */
  async state(): Promise<EncryptionState> {
    const store = await this.#deps.store()
    const state = { documents: 0, older: 0, unreadable: [] as string[] }
    for (let cursor: RotationCursor | undefined = FIRST_CURSOR; cursor !== undefined;) {
      const page: DocumentPage = await readPage(store, cursor)
      for (const checked of page.docs.map((doc) => this.#checkDocument(page.kind, doc))) {
        state.documents++
        if (checked.kind === 'older') state.older++
        if (checked.kind === 'unreadable') state.unreadable.push(checked.name)
      }
      cursor = page.next
    }
    return { key: this.#deps.keyring.keyName, ...state, unreadable: state.unreadable.slice(0, MAX_NAMED) }
  }

  /** `rotate` processes one page, from `after` on. The last page has no `next`. */
  async rotate({ after, by = '' }: { readonly after?: string; readonly by?: string } = {}): Promise<RotationPage> {
    const { keyring } = this.#deps
    if (!keyring.hasKey) throw missingKey('CONFLICT', 'for a rotation')
    const cursor = after === undefined ? FIRST_CURSOR : parseCursor(after)
    const store = await this.#deps.store()
    for (let tries = 0; tries < MAX_WRITE_TRIES; tries++) {
      const page = await readPage(store, cursor)
      const checked = page.docs.map((doc) => this.#checkDocument(page.kind, doc))
      const writes = checked.flatMap((one, at) => {
        const doc = page.docs[at]
        return one.kind !== 'older' || doc === undefined
          ? []
          : [{ kind: doc.kind, id: doc.id, ifRev: doc.rev, body: one.body }]
      })
      const what = `encrypted ${writes.length} of ${page.kind.kind} with the encryption key ${keyring.keyName}`
      const call = { writes, raiseRoutes: false, audit: { who: by, what } }
      // A concurrent change goes first, so the page is read again.
      if (writes.length > 0 && (await store.writeDocs(call)).kind === 'conflict') continue
      return {
        scanned: page.docs.length,
        reencrypted: writes.length,
        unreadable: checked.flatMap((one) => (one.kind === 'unreadable' ? [one.name] : [])),
        next: page.next === undefined ? undefined : `${page.next.at}:${page.next.after}`,
      }
    }
    throw new SluiceError('CONFLICT', 'Other processes keep changing the same documents. Try again.')
  }

  #checkDocument(of: EncryptedDocs, doc: Doc): DocumentStatus {
    try {
      const body = of.reencrypt(this.#deps.keyring, doc)
      return body === undefined ? { kind: 'as-it-is' } : { kind: 'older', body }
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'ENCRYPTION_KEY_UNKNOWN')
        return { kind: 'unreadable', name: `${doc.kind} ${doc.id}` }
      throw error
    }
  }
}

/** The index of the document kind, and the last processed document of that kind. */
interface RotationCursor {
  readonly at: number
  readonly after: string
}

interface DocumentPage {
  readonly kind: EncryptedDocs
  readonly docs: readonly Doc[]
  readonly next: RotationCursor | undefined
}

const FIRST_CURSOR: RotationCursor = { at: 0, after: '' }

async function readPage(store: Store, { at, after }: RotationCursor): Promise<DocumentPage> {
  const of = ENCRYPTED_KINDS[at] as EncryptedDocs
  const { docs, next } = await store.readDocs({ kind: of.kind, ids: undefined, after, n: PAGE })
  if (next !== undefined) return { kind: of, docs, next: { at, after: next } }
  return { kind: of, docs, next: at + 1 < ENCRYPTED_KINDS.length ? { at: at + 1, after: '' } : undefined }
}

function parseCursor(text: string): RotationCursor {
  const [, at = '', after = ''] = /^(\d):(.*)$/su.exec(text) ?? []
  if (at !== '' && Number(at) < ENCRYPTED_KINDS.length) return { at: Number(at), after }
  throw new SluiceError(
    'REQUEST_INVALID',
    'after must be the value of `next` in the page before. Omit it for the first page.',
  )
}
