// The stored state of a replay: what was requested and how far it is. Any process can continue from it.
import type { Millis } from '../clock.ts'
import type { Doc, RecordFilter, Store } from '../store/contract/index.ts'

export interface ReplayRecord {
  readonly id: string
  readonly state: 'running' | 'done' | 'cancelled'
  readonly filter: RecordFilter
  /** Set if the replay is for one event alone. */
  readonly event: string | undefined
  readonly into: readonly string[]
  /** Only into the lanes of this endpoint. */
  readonly endpoint?: string
  /** The replay is the history of a new endpoint: its events go before the live events, and the endpoint gets none of them twice. */
  readonly isHistory?: boolean
  /** Only for a history: all events are placed, and the replay waits until they are sent. */
  readonly isPlaced?: boolean
  /** The replay ends after this many events. */
  readonly most?: number
  readonly rate: number
  readonly per: Millis
  readonly started: Millis
  readonly ended: Millis | undefined
  /** The matching events, counted before the first one was placed. */
  readonly found: number
  readonly scanned: number
  /** When the last event that was read had arrived. */
  readonly reached?: Millis | undefined
  readonly placed: number
  /** Events that no flow takes, or that have no key. */
  readonly skipped: number
  /** Events that were purged or expired since they were counted. */
  readonly gone: number
  /** Events whose flow functions threw, or whose bytes could not be decrypted. */
  readonly failed: number
  /** The error of the last failed event. */
  readonly error: string
  /** The start of the replay; later arrivals are not part of it. */
  readonly until: Millis
  /** Where the next page begins, in the search of the store. */
  readonly cursor: string
  /** Rises with every page, cancel and resume. It is part of the dedupe id of the event that starts the next page. */
  readonly step: number
}

export const MAX_REPLAYS = 1_000
const KIND = 'replay'

export interface StoredReplay {
  readonly record: ReplayRecord
  readonly rev: number
  readonly now: Millis
  /** The epoch of the routes when the record was read: a change of flows or endpoints raises it (L18). */
  readonly routes: number
}

export async function readReplay(store: Store, id: string): Promise<StoredReplay | undefined> {
  const { docs, ...reply } = await store.readDocs({ kind: KIND, ids: [id], after: '', n: 1 })
  return docs[0] === undefined ? undefined : parseReplay(docs[0], reply)
}

export async function readReplays(
  store: Store,
): Promise<{ readonly all: readonly StoredReplay[]; readonly now: Millis }> {
  const { docs, ...reply } = await store.readDocs({ kind: KIND, ids: undefined, after: '', n: MAX_REPLAYS })
  return { all: docs.map((doc) => parseReplay(doc, reply)), now: reply.now }
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

function parseReplay(doc: Doc, { now, routes }: Pick<StoredReplay, 'now' | 'routes'>): StoredReplay {
  return { record: JSON.parse(Buffer.from(doc.body).toString()) as ReplayRecord, rev: doc.rev, now, routes }
}
