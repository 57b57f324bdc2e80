// Stats in the store. Each process writes its counts per minute into documents of ten minutes. Later the documents of
// all processes are folded into one: into ten-minute cells after two hours, into hours after a day. After eight days
// they are deleted.
import type { Millis } from '../../clock.ts'
import type { Doc, Store, WriteDocsCall } from '../../store/contract/index.ts'
import { parseDoc, readDoc, readDocPages, readDocsById, toDocBody } from '../../store/documents.ts'
import { Bucket, type StoredBucket } from './buckets.ts'

export const MINUTE: Millis = 60_000
/** The period that one document of a process covers. */
export const BLOCK: Millis = 10 * MINUTE
const HOUR: Millis = 60 * MINUTE
const DAY: Millis = 24 * HOUR

/** The levels of the rollup, newest first. */
interface RollupLevel {
  readonly kind: string
  /** The period that one document covers, and the period of one cell in it. */
  readonly docSpan: Millis
  readonly bucketSpan: Millis
  /** The age at which documents move to the next level; the last level deletes them. */
  readonly foldAfter: Millis
}

const PROCESS_LEVEL: RollupLevel = { kind: 'stats', docSpan: BLOCK, bucketSpan: MINUTE, foldAfter: 2 * HOUR }
const HOUR_LEVEL: RollupLevel = { kind: 'stats-hours', docSpan: HOUR, bucketSpan: BLOCK, foldAfter: 26 * HOUR }
const DAY_LEVEL: RollupLevel = { kind: 'stats-days', docSpan: DAY, bucketSpan: HOUR, foldAfter: 8 * DAY }
const LEVELS: readonly RollupLevel[] = [PROCESS_LEVEL, HOUR_LEVEL, DAY_LEVEL]

const PAGE = 50

export function floorTo(at: Millis, step: Millis): Millis {
  return Math.floor(at / step) * step
}

/** The result sorts by time. */
function toSortableTime(at: Millis): string {
  return String(at).padStart(15, '0')
}

export function toBlockId(block: Millis, by: string): string {
  return `${toSortableTime(block)}/${by}`
}

function docStart(doc: Doc): Millis {
  return Number(doc.id.split('/', 1)[0])
}

function serializeBuckets(cells: Iterable<Bucket>): Uint8Array {
  return toDocBody(Array.from(cells, (cell) => cell.toStored()))
}

function parseBuckets(doc: Doc): readonly StoredBucket[] {
  return parseDoc(doc) as readonly StoredBucket[]
}

/** `writeBlock` returns the new revision. It repeats a write whose reply was lost; `folded` means that it came too late. */
export async function writeBlock(
  store: Store,
  id: string,
  cells: Iterable<Bucket>,
  rev: number,
): Promise<number | 'folded'> {
  const body = serializeBuckets(cells)
  const write = (ifRev: number): ReturnType<Store['writeDocs']> =>
    store.writeDocs({ writes: [{ kind: PROCESS_LEVEL.kind, id, ifRev, body }], raiseRoutes: false, audit: undefined })
  const first = await write(rev)
  if (first.kind === 'conflict' && first.rev === 0) return 'folded'
  const reply = first.kind === 'conflict' ? await write(first.rev) : first
  return reply.kind === 'written' ? (reply.revs[0] ?? 0) : reply.rev
}

/** `readBuckets` returns all cells that overlap the time from `from` on, without the documents with these ids. */
export async function readBuckets(
  store: Store,
  from: Millis,
  without: ReadonlySet<string>,
): Promise<readonly StoredBucket[]> {
  const found: StoredBucket[] = []
  let before: readonly Doc[] = []
  for (const [at, level] of LEVELS.entries()) {
    const docs: Doc[] = []
    for await (const page of readDocPages(store, level.kind, toSortableTime(floorTo(from, level.docSpan) - 1)))
      docs.push(...page.docs.filter((doc) => !without.has(doc.id)))
    // This order may read a document twice that is folded meanwhile, but the missing original then reveals it.
    const folded = at === 0 ? [] : await findFolded(store, LEVELS[at - 1], before)
    found.push(...before.filter(({ id }) => !folded.includes(id)).flatMap(parseBuckets))
    before = docs
  }
  found.push(...before.flatMap(parseBuckets))
  return found.filter(({ at, span }) => at + span > from)
}

/** Returns those documents, among the ones due to be folded, that have been folded by now. */
async function findFolded(
  store: Store,
  level: RollupLevel | undefined,
  docs: readonly Doc[],
): Promise<readonly string[]> {
  if (level === undefined || docs.length === 0) return []
  const { now } = await store.readDocs({ kind: level.kind, ids: [], after: '', n: 1 })
  const due = docs.filter((doc) => isFoldDue(doc, level, now)).map(({ id }) => id)
  const there = await readDocsById(store, level.kind, due)
  return due.filter((id) => !there.has(id))
}

function isFoldDue(doc: Doc, { docSpan: length, foldAfter: until }: RollupLevel, now: Millis): boolean {
  return docStart(doc) + length <= now - until
}

/** `foldOld` folds one bounded piece and returns whether there is more. If two processes fold at once, one wins. */
export async function foldOld(store: Store): Promise<boolean> {
  for (const [at, level] of LEVELS.entries()) {
    const { docs, now } = await store.readDocs({ kind: level.kind, ids: undefined, after: '', n: PAGE })
    const due = docs.filter((doc) => isFoldDue(doc, level, now))
    if (due.length === 0) continue
    await foldDocs(store, due, level, LEVELS[at + 1])
    return true
  }
  return false
}

/** Folds the documents that belong into the same folded document as the first. */
async function foldDocs(
  store: Store,
  docs: readonly Doc[],
  { kind }: RollupLevel,
  into: RollupLevel | undefined,
): Promise<void> {
  const [first] = docs
  if (first === undefined) return
  const start = into === undefined ? 0 : floorTo(docStart(first), into.docSpan)
  const taken = into === undefined ? docs : docs.filter((doc) => floorTo(docStart(doc), into.docSpan) === start)
  const gone = taken.map(({ id, rev }) => ({ kind, id, ifRev: rev, body: undefined }))
  const kept = into === undefined ? [] : [await foldInto(store, into, start, taken)]
  await store.writeDocs({ writes: [...kept, ...gone], raiseRoutes: false, audit: undefined })
}

async function foldInto(
  store: Store,
  { kind, bucketSpan: span }: RollupLevel,
  start: Millis,
  docs: readonly Doc[],
): Promise<WriteDocsCall['writes'][number]> {
  const id = toSortableTime(start)
  const { doc: known } = await readDoc(store, kind, id)
  const cells = new Map<Millis, Bucket>()
  for (const written of [known ?? [], ...docs].flat().flatMap(parseBuckets)) {
    const at = floorTo(written.at, span)
    const cell = cells.get(at) ?? new Bucket(at, span)
    cells.set(at, cell)
    cell.add(written)
  }
  return { kind, id, ifRev: known?.rev ?? 0, body: serializeBuckets(cells.values()) }
}
