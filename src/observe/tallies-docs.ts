// Tallies in the store: each process writes what it counted in documents of ten minutes, by the minute. Later they are folded,
// those of all processes into one: after two hours by tens of minutes, after a day by hours. After eight days they are gone.
import type { Millis } from '../clock.ts'
import type { Doc, Store, WriteDocsCall } from '../store/contract/index.ts'
import { Cell, type WrittenCell } from './tallies-count.ts'

export const MINUTE: Millis = 60_000
/** How much one document of a process is of. */
export const BLOCK: Millis = 10 * MINUTE
const HOUR: Millis = 60 * MINUTE
const DAY: Millis = 24 * HOUR

/** Where tallies are, from the newest on. */
interface Level {
  readonly kind: string
  /** How much one document is of, and one cell in it. */
  readonly doc: Millis
  readonly cell: Millis
  /** When they go to the next level; from the last one they go for good. */
  readonly until: Millis
}

const OF_PROCESS: Level = { kind: 'tally', doc: BLOCK, cell: MINUTE, until: 2 * HOUR }
const OF_HOUR: Level = { kind: 'tally-hours', doc: HOUR, cell: BLOCK, until: 26 * HOUR }
const OF_DAY: Level = { kind: 'tally-days', doc: DAY, cell: HOUR, until: 8 * DAY }
const LEVELS: readonly Level[] = [OF_PROCESS, OF_HOUR, OF_DAY]

const PAGE = 50

export function floor(at: Millis, step: Millis): Millis {
  return Math.floor(at / step) * step
}

/** Sorts by time. */
function timeText(at: Millis): string {
  return String(at).padStart(15, '0')
}

export function blockId(block: Millis, by: string): string {
  return `${timeText(block)}/${by}`
}

function startOf(doc: Doc): Millis {
  return Number(doc.id.split('/', 1)[0])
}

function cellsText(cells: Iterable<Cell>): Uint8Array {
  return Buffer.from(JSON.stringify(Array.from(cells, (cell) => cell.written())))
}

function cellsIn(doc: Doc): readonly WrittenCell[] {
  return JSON.parse(Buffer.from(doc.body).toString()) as readonly WrittenCell[]
}

/** Answers its new revision. One that was written and not heard of is written again; `folded`: it is too late for that. */
export async function writeBlock(
  store: Store,
  id: string,
  cells: Iterable<Cell>,
  rev: number,
): Promise<number | 'folded'> {
  const body = cellsText(cells)
  const write = (ifRev: number): ReturnType<Store['writeDocs']> =>
    store.writeDocs({ writes: [{ kind: OF_PROCESS.kind, id, ifRev, body }], raiseRoutes: false, audit: undefined })
  const first = await write(rev)
  if (first.kind === 'conflict' && first.rev === 0) return 'folded'
  const reply = first.kind === 'conflict' ? await write(first.rev) : first
  return reply.kind === 'written' ? (reply.revs[0] ?? 0) : reply.rev
}

/** All cells that reach into the time from `from` on, but for the documents of these ids. */
export async function readCells(
  store: Store,
  from: Millis,
  without: ReadonlySet<string>,
): Promise<readonly WrittenCell[]> {
  const found: WrittenCell[] = []
  let before: readonly Doc[] = []
  for (const [at, level] of LEVELS.entries()) {
    const docs = (await allDocs(store, level.kind, timeText(floor(from, level.doc) - 1))).filter(
      (doc) => !without.has(doc.id),
    )
    // In this order what is folded meanwhile is seen twice, and known by its first document being gone.
    const folded = at === 0 ? [] : await goneBy(store, LEVELS[at - 1], before)
    found.push(...before.filter(({ id }) => !folded.includes(id)).flatMap(cellsIn))
    before = docs
  }
  found.push(...before.flatMap(cellsIn))
  return found.filter(({ at, span }) => at + span > from)
}

/** Of documents that are due to be folded, those that have been by now. */
async function goneBy(store: Store, level: Level | undefined, docs: readonly Doc[]): Promise<readonly string[]> {
  if (level === undefined || docs.length === 0) return []
  const { now } = await store.readDocs({ kind: level.kind, ids: [], after: '', n: 1 })
  const due = docs.filter((doc) => isDue(doc, level, now)).map(({ id }) => id)
  const left = await store.readDocs({ kind: level.kind, ids: due, after: '', n: due.length })
  const there = new Set(left.docs.map(({ id }) => id))
  return due.filter((id) => !there.has(id))
}

async function allDocs(store: Store, kind: string, from: string): Promise<readonly Doc[]> {
  const docs: Doc[] = []
  for (let after: string | undefined = from; after !== undefined;) {
    const page: Awaited<ReturnType<Store['readDocs']>> = await store.readDocs({ kind, ids: undefined, after, n: PAGE })
    docs.push(...page.docs)
    after = page.next
  }
  return docs
}

function isDue(doc: Doc, { doc: length, until }: Level, now: Millis): boolean {
  return startOf(doc) + length <= now - until
}

/** One bounded piece; answers whether there is more. Any process may do it: of two that try, one does. */
export async function foldOld(store: Store): Promise<boolean> {
  for (const [at, level] of LEVELS.entries()) {
    const { docs, now } = await store.readDocs({ kind: level.kind, ids: undefined, after: '', n: PAGE })
    const due = docs.filter((doc) => isDue(doc, level, now))
    if (due.length === 0) continue
    await fold(store, due, level, LEVELS[at + 1])
    return true
  }
  return false
}

/** Those that belong into the same document as the first. */
async function fold(store: Store, docs: readonly Doc[], { kind }: Level, into: Level | undefined): Promise<void> {
  const [first] = docs
  if (first === undefined) return
  const start = into === undefined ? 0 : floor(startOf(first), into.doc)
  const taken = into === undefined ? docs : docs.filter((doc) => floor(startOf(doc), into.doc) === start)
  const gone = taken.map(({ id, rev }) => ({ kind, id, ifRev: rev, body: undefined }))
  const kept = into === undefined ? [] : [await foldedInto(store, into, start, taken)]
  await store.writeDocs({ writes: [...kept, ...gone], raiseRoutes: false, audit: undefined })
}

async function foldedInto(
  store: Store,
  { kind, cell: span }: Level,
  start: Millis,
  docs: readonly Doc[],
): Promise<WriteDocsCall['writes'][number]> {
  const id = timeText(start)
  const { docs: known } = await store.readDocs({ kind, ids: [id], after: '', n: 1 })
  const cells = new Map<Millis, Cell>()
  for (const written of [...known, ...docs].flatMap(cellsIn)) {
    const at = floor(written.at, span)
    const cell = cells.get(at) ?? new Cell(at, span)
    cells.set(at, cell)
    cell.add(written)
  }
  return { kind, id, ifRev: known[0]?.rev ?? 0, body: cellsText(cells.values()) }
}
