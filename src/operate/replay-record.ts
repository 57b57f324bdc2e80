// What is kept of a replay: what was asked for, and how far it has come. A document of the store, so that any process can
// go on with it.
import type { Millis } from '../clock.ts'
import type { Doc, Filter, Store } from '../store/contract/index.ts'

export interface ReplayRecord {
  readonly id: string
  readonly state: 'running' | 'done' | 'cancelled'
  readonly filter: Filter
  /** One event alone. */
  readonly event: string | undefined
  readonly into: readonly string[]
  readonly rate: number
  readonly per: Millis
  readonly started: Millis
  readonly ended: Millis | undefined
  /** Events by the filter, counted before the first was placed. */
  readonly found: number
  readonly looked: number
  readonly placed: number
  /** No flow wanted them, or found a key in them. */
  readonly skipped: number
  /** Purged, or too old to be kept, since they were counted. */
  readonly gone: number
  /** A flow's code threw, or the bytes could not be opened. */
  readonly failed: number
  /** Of the last that failed. */
  readonly error: string
  /** What arrives from now on is no part of it. */
  readonly until: Millis
  readonly cursor: string
  readonly step: number
}

export const MOST_REPLAYS = 1_000
const KIND = 'replay'

export interface KeptReplay {
  readonly record: ReplayRecord
  readonly rev: number
  readonly now: Millis
}

export async function readReplay(store: Store, id: string): Promise<KeptReplay | undefined> {
  const { docs, now } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
  return docs[0] === undefined ? undefined : kept(docs[0], now)
}

export async function readReplays(
  store: Store,
): Promise<{ readonly all: readonly KeptReplay[]; readonly now: Millis }> {
  const { docs, now } = await store.readDocs({ kind: KIND, ids: undefined, after: '', n: MOST_REPLAYS })
  return { all: docs.map((doc) => kept(doc, now)), now }
}

export async function writeReplay(
  store: Store,
  record: ReplayRecord,
  ifRev: number,
  what: 'keep' | 'remove' = 'keep',
): Promise<'written' | 'conflict'> {
  const body = what === 'keep' ? Buffer.from(JSON.stringify(record)) : undefined
  const writes = [{ kind: KIND, id: record.id, ifRev, body }]
  return (await store.writeDocs({ writes, raiseRoutes: false, audit: undefined })).kind
}

function kept(doc: Doc, now: Millis): KeptReplay {
  return { record: JSON.parse(Buffer.from(doc.body).toString()) as ReplayRecord, rev: doc.rev, now }
}
