// What people, the API and the command line ask of a store: documents, search, figures. Reads only what is bounded.
import type { Millis } from '../../clock.ts'
import type { Event } from '../../model/event.ts'
import type { StoreHygiene } from '../../model/hygiene.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Attempt, Lane } from '../../model/lane.ts'
import type { MarkReason, Reply } from './work.ts'

export interface RecordStore {
  /** Flows, endpoints, secrets, keys, settings: small documents of a kind. */
  readDocs(call: ReadDocsCall): Promise<ReadDocsReply>
  /** All or none, each against the revision it was read at; the audit entry is part of the commit. */
  writeDocs(call: WriteDocsCall): Promise<WriteDocsReply>
  /** Newest first, unless asked otherwise. Does bounded work: a page may be empty and still have a `next`. */
  find<K extends RecordKind>(call: FindCall<K>): Promise<FindReply<K>>
  get<K extends RecordKind>(call: { readonly kind: K; readonly id: string }): Promise<GetReply<K>>
  /** Counts up to `atMost`, by bounded work: goes on from `next`. */
  count(call: CountCall): Promise<CountReply>
  /** Costs as much as there are flows, not as there are lanes. */
  stats(): Promise<StatsReply>
  bodies(call: { readonly events: readonly string[] }): Promise<BodiesReply>
  /** What changed lately, for live views. May skip under load, and says so. */
  feed(call: { readonly after: number; readonly n: number }): Promise<FeedReply>
}

export interface Doc {
  readonly kind: string
  readonly id: string
  readonly rev: number
  readonly body: Uint8Array
}

export interface ReadDocsCall {
  readonly kind: string
  /** Undefined: all of the kind, a page of `n` after the id `after`. */
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
    /** 0: must not exist yet. */
    readonly ifRev: number
    /** Undefined: removed. */
    readonly body: Uint8Array | undefined
  }[]
  /** Raises the epoch of the routes: appends routed by the old ones are refused (L18). */
  readonly raiseRoutes: boolean
  readonly audit: { readonly who: string; readonly what: string } | undefined
}

export type WriteDocsReply = Reply &
  (
    | { readonly kind: 'written'; readonly revs: readonly number[] }
    | { readonly kind: 'conflict'; readonly at: number; readonly rev: number }
  )

export type RecordKind = 'events' | 'lanes' | 'runs' | 'dead' | 'marks' | 'audit'

export interface EventRecord extends Omit<Event, 'body'> {
  readonly size: number
  readonly purged: boolean
  readonly duplicates: number
  readonly lanes: readonly LaneId[]
  /** Only from `get`. */
  readonly body?: Uint8Array
  readonly request?: Uint8Array
  readonly receipts?: readonly Receipt[]
}

/** What a duplicate or a conflict leaves at the first event. */
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
  /** When it first began: a dead letter that runs again keeps it. */
  readonly started: Millis
  readonly ended: Millis
  readonly tries: number
  readonly lapses: number
  readonly events: readonly string[]
  readonly attempts: readonly Attempt[]
}

export interface LetterRecord {
  readonly id: string
  readonly parent: string
  readonly lane: LaneId
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly state: 'dead' | 'queued' | 'running'
  readonly reason: string
  readonly at: Millis
  readonly tries: number
  readonly lapses: number
  readonly blocks: boolean
  readonly events: readonly string[]
  readonly attempts: readonly Attempt[]
}

export interface MarkRecord {
  readonly id: number
  readonly event: string
  readonly flow: string
  readonly reason: MarkReason
  readonly error: string
  readonly since: Millis
  readonly tries: number
}

export interface AuditRecord {
  readonly id: number
  readonly at: Millis
  readonly who: string
  readonly what: string
  /** Of this entry and the one before: a changed or missing entry shows. */
  readonly chain: string
}

export interface Records {
  readonly events: EventRecord
  readonly lanes: Lane
  readonly runs: RunRecord
  readonly dead: LetterRecord
  readonly marks: MarkRecord
  readonly audit: AuditRecord
}

export interface Filter {
  readonly source?: string
  /** Sources that begin with this are left out. */
  readonly withoutSource?: string
  readonly type?: string
  readonly tenant?: string
  readonly flow?: string
  readonly lane?: LaneId
  readonly from?: Millis
  readonly to?: Millis
}

export interface FindCall<K extends RecordKind> {
  readonly kind: K
  readonly filter: Filter
  /** From the page before, in the same order; '' for the first. */
  readonly cursor: string
  readonly n: number
  readonly oldestFirst?: boolean
}

export interface FindReply<K extends RecordKind> extends Reply {
  readonly items: readonly Records[K][]
  readonly next: string | undefined
}

export interface GetReply<K extends RecordKind> extends Reply {
  readonly item: Records[K] | undefined
}

export interface CountCall {
  readonly kind: RecordKind
  readonly filter: Filter
  /** From the count before; '' to begin with the newest. */
  readonly cursor: string
  readonly atMost: number
}

export interface CountReply extends Reply {
  readonly count: number
  /** Undefined: this was all. Otherwise there may be more. */
  readonly next: string | undefined
}

export interface FlowStats {
  readonly flow: string
  /** Those that wait for a moment, counted up to a bound of the store's own, at least 10,000. */
  readonly lanes: number
  readonly live: number
  readonly due: Millis | undefined
  readonly paused: { readonly reason: string; readonly by: string; readonly since: Millis } | undefined
}

export interface LimitStats {
  readonly name: string
  readonly epoch: number
  readonly pausedUntil: Millis
  /** The last moment that was given, or told to somebody whose slot was too far away; past or to come. */
  readonly last: Millis
  /** How many times as long `per` is now, since the other side refused; 1: as declared. */
  readonly stretch: number
}

export interface StatsReply extends Reply {
  readonly flows: readonly FlowStats[]
  readonly letters: number
  readonly marks: readonly { readonly reason: MarkReason; readonly count: number; readonly oldest: Millis }[]
  /** At most 1,000, those first that matter longest from now on: a limit may have a row for each key. */
  readonly limits: readonly LimitStats[]
  readonly bytes: number
  readonly durable: { readonly yes: boolean; readonly because: string }
  /** Of a store on a server that clears away by itself what was changed; at most ten seconds old. */
  readonly hygiene?: StoreHygiene
}

export interface BodiesReply extends Reply {
  /** Undefined where the event is gone. */
  readonly bodies: readonly (Uint8Array | undefined)[]
}

export interface Change {
  readonly seq: number
  readonly at: Millis
  readonly kind: 'event' | 'claimed' | 'settled' | 'steered' | 'purged'
  readonly flow: string
  readonly id: string
  readonly detail: string
  /** Where one lane is concerned. */
  readonly lane?: LaneId
  readonly key?: string
  /** Of an event. */
  readonly source?: string
}

export interface FeedReply extends Reply {
  readonly changes: readonly Change[]
  readonly next: number
  readonly skipped: boolean
}
