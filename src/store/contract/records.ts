// `RecordStore` is the part of a store that people, the API and the command line use: documents, search and stats.
// Each call reads a bounded amount.
import { hash } from 'node:crypto'
import type { Millis } from '../../clock.ts'
import type { Event } from '../../model/event.ts'
import type { VacuumStats } from '../../model/vacuum-stats.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Attempt, Lane } from '../../model/lane.ts'
import type { Skip } from '../../model/routing.ts'
import type { UnroutedFlow, UnroutedReason, Reply } from './work.ts'

export interface RecordStore {
  /** `readDocs` reads small documents of one kind: flows, endpoints, secrets, keys, settings. */
  readDocs(call: ReadDocsCall): Promise<ReadDocsReply>
  /**
   * `writeDocs` writes all documents or none, each against the revision at which it was read. The audit entry is part of the
   * commit.
   */
  writeDocs(call: WriteDocsCall): Promise<WriteDocsReply>
  /** `find` lists records, newest first by default. It does bounded work: a page may be empty and still have a `next`. */
  find<K extends RecordKind>(call: FindCall<K>): Promise<FindReply<K>>
  get<K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<GetReply<K>>
  /** `count` counts up to `atMost` records with bounded work, and continues from `next`. */
  count(call: CountCall): Promise<CountReply>
  /** `stats` returns numbers per flow. Its cost grows with the number of flows, not of lanes. */
  stats(): Promise<StatsReply>
  readBodies(call: { readonly events: readonly string[] }): Promise<ReadBodiesReply>
  /** `readFeed` returns the latest changes, for live views. It may skip some under load, and then sets `skipped`. */
  readFeed(call: { readonly after: number; readonly n: number }): Promise<ReadFeedReply>
}

export interface Doc {
  readonly kind: string
  readonly id: string
  readonly rev: number
  readonly body: Uint8Array
}

export interface ReadDocsCall {
  readonly kind: string
  /** Undefined: all documents of the kind, as a page of `n` after the id `after`. */
  readonly ids: readonly string[] | undefined
  readonly after: string
  readonly n: number
}

export interface ReadDocsReply extends Reply {
  readonly docs: readonly Doc[]
  readonly next: string | undefined
}

export interface WriteDocsCall {
  readonly writes: readonly {
    readonly kind: string
    readonly id: string
    /** The revision that was read. 0: the document must not exist yet. */
    readonly ifRev: number
    /** Undefined: the document is removed. */
    readonly body: Uint8Array | undefined
  }[]
  /** Raises the epoch of the routes: appends that were routed by an older epoch are rejected (L18). */
  readonly raiseRoutes: boolean
  readonly audit: { readonly who: string; readonly what: string } | undefined
}

export type WriteDocsReply = Reply &
  (
    | { readonly kind: 'written'; readonly revs: readonly number[] }
    | { readonly kind: 'conflict'; readonly at: number; readonly rev: number }
  )

export type RecordKind = 'events' | 'lanes' | 'runs' | 'dead' | 'unrouted' | 'audit'

export interface EventRecord extends Omit<Event, 'body'> {
  readonly size: number
  readonly purged: boolean
  readonly duplicates: number
  readonly lanes: readonly LaneId[]
  /** The flows that still lack a placement for the event. */
  readonly unrouted: readonly UnroutedFlow[]
  /** The flows that match the event but gave it no placement. */
  readonly skips: readonly Skip[]
  /** Only `get` returns this field. */
  readonly body?: Uint8Array
  readonly request?: Uint8Array
  readonly receipts?: readonly Receipt[]
}

/** `Receipt` is what a duplicate or a conflict leaves on the first event. */
export interface Receipt {
  readonly at: Millis
  readonly kind: 'duplicate' | 'conflict'
  readonly event: string
  readonly bodyHash: string
}

export interface RunRecord {
  readonly id: string
  readonly parent: string
  readonly lane: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly kind: 'done' | 'partial' | 'dead' | 'dropped' | 'cancelled' | 'purged' | 'superseded'
  readonly reason: string
  /** The time at which the run first began. A dead letter that runs again keeps it. */
  readonly started: Millis
  readonly ended: Millis
  readonly tries: number
  readonly lapses: number
  readonly events: readonly string[]
  readonly attempts: readonly Attempt[]
}

export interface DeadLetterRecord extends Omit<RunRecord, 'kind' | 'started' | 'ended'> {
  readonly state: 'dead' | 'queued' | 'running'
  readonly at: Millis
  readonly blocks: boolean
}

export interface UnroutedRecord {
  readonly id: number
  readonly event: string
  readonly flow: string
  readonly reason: UnroutedReason
  readonly error: string
  readonly since: Millis
  readonly tries: number
}

export interface AuditRecord {
  readonly id: number
  readonly at: Millis
  readonly who: string
  readonly what: string
  /** The hash of this entry and the one before, so a changed or missing entry is detectable. */
  readonly chain: string
}

/**
 * `AUDIT_HEAD` is the document with the newest entry, which the store writes with that entry. Without it, a log whose last entries
 * were removed would look complete.
 */
export const AUDIT_HEAD = { kind: 'audit-head', id: 'head' } as const

export type AuditHead = Pick<AuditRecord, 'id' | 'chain'>

export function parseAuditHead(doc: Pick<Doc, 'body'> | undefined): AuditHead | undefined {
  return doc === undefined ? undefined : (JSON.parse(Buffer.from(doc.body).toString()) as AuditHead)
}

/** `computeChainHash` returns the hash of an entry. `before` is the hash of the previous entry, '' for the first. */
export function computeChainHash(before: string, { id, at, who, what }: Omit<AuditRecord, 'chain'>): string {
  return hash('sha256', JSON.stringify([before, id, at, who, what]), 'base64url')
}

export interface RecordTypes {
  readonly events: EventRecord
  readonly lanes: Lane
  readonly runs: RunRecord
  readonly dead: DeadLetterRecord
  readonly unrouted: UnroutedRecord
  readonly audit: AuditRecord
}

export interface RecordFilter {
  readonly source?: string
  /** Sources that begin with this text are left out. */
  readonly withoutSource?: string
  readonly type?: string
  readonly tenant?: string
  /** Never ''. For dead letters and unrouted events: the subject of one of their events. */
  readonly subject?: string
  readonly flow?: string
  readonly lane?: LaneId
  /** For events, with `lane`: those that wait in the lane now, or those of its run, among the first 1,000 of each. */
  readonly placed?: 'waiting' | 'run'
  readonly from?: Millis
  readonly to?: Millis
}

export interface FindCall<K extends RecordKind> {
  readonly kind: K
  readonly filter: RecordFilter
  /** `next` of the previous page, in the same order; '' for the first page. */
  readonly cursor: string
  readonly n: number
  readonly oldestFirst?: boolean
}

/** `MAX_PLACED` is the number of waiting events, and of events of the run, that the filter `placed` covers. */
export const MAX_PLACED = 1_000

/** `isCursor` returns whether a text can be the `next` of a page; '' asks for the first page. */
export function isCursor(text: string): boolean {
  return text === '' || (/^\d{1,16}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER)
}

export interface FindReply<K extends RecordKind> extends Reply {
  readonly items: readonly RecordTypes[K][]
  readonly next: string | undefined
}

export interface GetReply<K extends RecordKind> extends Reply {
  readonly item: RecordTypes[K] | undefined
}

export interface CountCall {
  readonly kind: RecordKind
  readonly filter: RecordFilter
  /** `next` of the previous count; '' to begin with the newest. */
  readonly cursor: string
  readonly atMost: number
}

export interface CountReply extends Reply {
  readonly count: number
  /** Undefined if everything was counted. Otherwise there may be more. */
  readonly next: string | undefined
}

export interface FlowStats {
  readonly flow: string
  /** How many lanes have a deadline, counted up to a bound that the store chooses, at least 10,000. */
  readonly lanes: number
  readonly live: number
  readonly due: Millis | undefined
  readonly paused: { readonly reason: string; readonly by: string; readonly since: Millis } | undefined
}

export interface LimitStats {
  readonly name: string
  readonly epoch: number
  readonly pausedUntil: Millis
  /** The last slot time that was given or promised to a caller whose slot was too far away. It may be past or future. */
  readonly last: Millis
  /** The current factor on `per`, raised by a refusal of the other side; 1: as declared. */
  readonly stretch: number
}

export interface StatsReply extends Reply {
  readonly flows: readonly FlowStats[]
  readonly deadLetters: number
  readonly unrouted: readonly { readonly reason: UnroutedReason; readonly count: number; readonly oldest: Millis }[]
  /** At most 1,000 limits, those that matter longest first: a limit may have a row for each key. */
  readonly limits: readonly LimitStats[]
  readonly bytes: number
  readonly durable: { readonly isDurable: boolean; readonly reason: string }
  /** Only from a store on a server that vacuums changed rows by itself. At most ten seconds old. */
  readonly vacuum?: VacuumStats
  /** Only from a store on a server that keeps everything in its memory: how full that is, from 0 to 1. Undefined if it has no bound. */
  readonly memoryUsed?: number | undefined
}

export interface ReadBodiesReply extends Reply {
  /** Undefined for an event that is gone. */
  readonly bodies: readonly (Uint8Array | undefined)[]
}

export interface FeedLane {
  readonly lane: LaneId
  readonly flow: string
  /** Missing if it is long. */
  readonly key?: string
}

export interface FeedEntry {
  readonly seq: number
  readonly at: Millis
  readonly kind: 'event' | 'claimed' | 'settled' | 'steered' | 'purged'
  readonly flow: string
  readonly id: string
  readonly detail: string
  /** The lane and its key, for a change of one lane. */
  readonly lane?: LaneId
  readonly key?: string
  /** The source, for a change of an event. */
  readonly source?: string
  /** The first 8 lanes that a new event entered. */
  readonly lanes?: readonly FeedLane[]
  /** Why a flow does not take the event, or why no flow does. */
  readonly note?: string
}

export interface ReadFeedReply extends Reply {
  readonly changes: readonly FeedEntry[]
  readonly next: number
  readonly skipped: boolean
}
