// Documents of one kind: these functions read them, and change one against the revision that was read.
import { SluiceError } from '../errors.ts'
import type { Millis } from '../clock.ts'
import type { Doc, ReadDocsReply, Store, WriteDocsCall } from './contract/index.ts'

type DocReader = Pick<Store, 'readDocs'>

const PAGE = 500
/** Processes that change one document at the same time take turns. So many lost turns mean that something is wrong. */
const TRIES = 10

export function parseDoc({ body }: Pick<Doc, 'body'>): unknown {
  return JSON.parse(Buffer.from(body).toString())
}

export function toDocBody(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

interface DocReply extends Pick<ReadDocsReply, 'now' | 'routes'> {
  readonly doc: Doc | undefined
}

export async function readDoc(store: DocReader, kind: string, id: string): Promise<DocReply> {
  const { docs, now, routes } = await store.readDocs({ kind, ids: [id], after: '', n: 1 })
  return { doc: docs[0], now, routes }
}

/** `readDocsById` returns those of the documents that exist. */
export async function readDocsById(
  store: DocReader,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Doc>> {
  const found = new Map<string, Doc>()
  for (let from = 0; from < ids.length; from += PAGE) {
    const some = ids.slice(from, from + PAGE)
    const { docs } = await store.readDocs({ kind, ids: some, after: '', n: some.length })
    for (const doc of docs) found.set(doc.id, doc)
  }
  return found
}

/** `readDocPages` yields all documents of the kind whose id is after `after`. */
export async function* readDocPages(store: DocReader, kind: string, after = ''): AsyncGenerator<ReadDocsReply> {
  for (let from: string | undefined = after; from !== undefined;) {
    const page: ReadDocsReply = await store.readDocs({ kind, ids: undefined, after: from, n: PAGE })
    yield page
    from = page.next
  }
}

export interface DocChange extends Partial<Pick<WriteDocsCall, 'raiseRoutes' | 'audit'>> {
  readonly kind: string
  readonly id: string
  /** The name of the document in the error after too many conflicts. */
  readonly title: string
}

export interface DocDecision<R> {
  /** Undefined removes the document. Without `body`, the document stays as it is. */
  readonly body?: Uint8Array | undefined
  readonly result: R
}

/** `changeDoc` writes what `decide` makes of the document. After a concurrent change, it reads and decides again. */
export async function changeDoc<R>(
  store: Pick<Store, 'readDocs' | 'writeDocs'>,
  { kind, id, title, raiseRoutes = false, audit }: DocChange,
  decide: (doc: Doc | undefined, now: Millis) => DocDecision<R>,
): Promise<R> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { doc, now } = await readDoc(store, kind, id)
    const { result, ...change } = decide(doc, now)
    const isSame = !('body' in change) || (change.body === undefined && doc === undefined)
    if (isSame) return result
    const writes = [{ kind, id, ifRev: doc?.rev ?? 0, body: change.body }]
    if ((await store.writeDocs({ writes, raiseRoutes, audit })).kind === 'written') return result
  }
  throw new SluiceError('CONFLICT', `Other processes keep changing ${title}. Try again.`)
}
