// What a store keeps: plain rows, read and written one by one inside a commit that somebody else makes atomic.
// Everything that decides is above this line, once; stores differ only below it.
import type { Millis } from '../../clock.ts'
import type { Event } from '../../model/event.ts'
import type { Identity, LaneId } from '../../model/identity.ts'
import type { Lane, Line, Rank } from '../../model/lane.ts'
import type { LimitNumbers, LimitState, SlotPage } from '../../model/limit.ts'
import type { Pressure } from '../../model/pressure.ts'
import type {
  AuditRecord,
  CountCall,
  Doc,
  FindCall,
  LetterRecord,
  Mark,
  NewEvent,
  Receipt,
  RecordKind,
  Records,
  RunRecord,
  StatsReply,
} from '../contract/index.ts'

/** An event as it is kept. `seq` is its row: events of one store are numbered as they arrive. */
export interface EventRow extends Event {
  readonly seq: number
  readonly identity: Identity
  readonly dedupeUntil: Millis
  readonly request: Uint8Array
  readonly lanes: readonly LaneId[]
  /** Its bytes are gone; this is what they hashed to. '' while they are here. */
  readonly purgedHash: string
  /** To be purged as soon as no lane needs it. */
  readonly doomed: boolean
}

/** What an event does not bring along. */
export type Arrival = Pick<EventRow, 'arrived' | 'dedupeUntil' | 'lanes'>

/** What a run needs of an event. */
export interface PlacedEvent extends Event {
  readonly seq: number
}

/** A place in a lane: the event `event` stands at `pos`. */
export interface PlaceRow {
  readonly pos: number
  readonly event: number
  readonly size: number
}

export interface LetterRow extends Omit<LetterRecord, 'events'> {
  /** Dead letters of a lane run in the order in which they died. */
  readonly order: number
  readonly group: string
  readonly places: readonly PlaceRow[]
}

export interface RunRow extends Omit<RunRecord, 'events'> {
  readonly events: readonly number[]
}

export interface MarkRow extends Mark {
  readonly id: number
  readonly event: number
  readonly since: Millis
  readonly due: Millis
  readonly tries: number
  readonly token: number
}

export interface ProcessRow {
  readonly at: Millis
  readonly request: number
  /** The answer to that request, as JSON. */
  readonly answer: string
}

/** A slot that was given to a ticket, in all its limits at once. */
export interface TicketRow {
  readonly ticket: string
  readonly order: number
  readonly at: Millis
  readonly used: boolean
  readonly limits: readonly (LimitNumbers & { readonly name: string })[]
}

export interface PauseRow {
  readonly reason: string
  readonly by: string
  readonly since: Millis
}

export interface ReadyQuery {
  readonly flow: string
  readonly line: Line
  readonly now: Millis
  readonly n: number
}

export interface GroupQuery {
  readonly flow: string
  readonly lines: readonly Line[]
  readonly now: Millis
  /** Groups with so many live runs are passed over. */
  readonly perGroup: number
  readonly n: number
}

export interface LaneTable {
  get(id: LaneId): Lane | undefined
  put(lane: Lane): void
  /** The first lane of its line, whose new run took the first of what waits: `before` and after. Most end soon. */
  begun(before: Lane, lane: Lane): void
  remove(lane: Lane): void
  /** Lanes whose deadline has passed, by (deadline, ticket). */
  ready(query: ReadyQuery): readonly Lane[]
  /** The first ready lanes of the next `n` groups: served longest ago first, then by the lanes' (deadline, ticket). */
  inTurn(query: GroupQuery): readonly Lane[]
  /** The lane's group was served: `turn` is a number of the counter. */
  tookTurn(lane: Lane, turn: number, now: Millis): void
  /** Of `n` groups served before a moment, forgets those with no lane that waits for time; the others count from now. */
  forgetTurns(before: Millis, now: Millis, n: number): number
  /** The earliest deadline of the flow in these lines. */
  head(flow: string, lines: readonly Line[]): Millis | undefined
  /** Lanes kept only to remember when they last ran, and no longer. */
  stale(now: Millis, n: number): readonly Lane[]
  /** Lanes of the flow whose window has not passed, beyond `most` per tenant, the oldest window first. */
  beyond(flow: string, most: number, now: Millis): readonly Lane[]
}

export interface PlaceTable {
  add(lane: Lane, rank: Rank, place: PlaceRow): void
  /** The first `n`, by position. */
  first(lane: Lane, rank: Rank, n: number): readonly PlaceRow[]
  upto(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[]
  /** Removes and answers those up to `pos`. */
  take(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[]
  remove(lane: Lane, rank: Rank, positions: readonly number[]): void
  of(lane: Lane, event: number): readonly { readonly rank: Rank; readonly place: PlaceRow }[]
}

export interface EventTable {
  /** False when the id or the identity is taken; the event's row otherwise. */
  insert(event: NewEvent, arrival: Arrival): number | false
  byId(id: string): EventRow | undefined
  byIdentity(identity: Identity): EventRow | undefined
  bySeq(seq: number): EventRow | undefined
  /** Whether its bytes are still here. */
  hasBytes(seq: number): boolean
  /** The events at these places, each once, in any order; those that are gone are left out. */
  at(places: readonly PlaceRow[]): readonly PlacedEvent[]
  /** The identity may be used again: its time is over. */
  forgetIdentity(seq: number): void
  setLanes(seq: number, lanes: readonly LaneId[]): void
  wipe(seq: number, hash: string): void
  doom(seq: number): void
  doomed(after: number, n: number): readonly EventRow[]
  ofTenant(tenant: string, n: number): readonly EventRow[]
  addReceipt(seq: number, receipt: Receipt): void
  receipts(seq: number): readonly Receipt[]
  /** In order of arrival, after `seq`. */
  oldest(after: number, n: number): readonly EventRow[]
  /** The same rows without what is in them: to see whether any is old, no body is read. */
  arrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[]
  remove(seq: number): void
}

export interface RunTable {
  /** `isFirst`: there surely is no record of it yet. Of one that is overwritten the first start stays: records stand in that order. */
  put(run: RunRow, isFirst: boolean): void
  /** The newest `n`, the newest first. */
  ofLane(lane: LaneId, n: number): readonly RunRow[]
  remove(id: string): void
  /** In the order in which they began, after the run of that number. */
  oldest(after: number, n: number): readonly RunRow[]
}

export interface LetterTable {
  get(id: string): LetterRow | undefined
  put(letter: LetterRow): void
  remove(id: string): void
  ofLane(lane: LaneId): readonly LetterRow[]
  /** All that the lane's letters hold. */
  eventsOf(lane: LaneId): readonly number[]
  /** The queued letter of the lane that died first. */
  nextQueued(lane: LaneId): LetterRow | undefined
  /** Dead before the moment, not queued, and nothing waits for them. */
  expirable(moment: Millis, n: number): readonly LetterRow[]
}

export interface MarkTable {
  get(id: number): MarkRow | undefined
  put(mark: MarkRow): void
  remove(id: number): void
  due(now: Millis, reasons: readonly string[], flows: readonly string[], n: number): readonly MarkRow[]
  ofEvent(event: number): readonly MarkRow[]
}

/** What was published inside somebody else's transaction, and is committed (L17). */
export interface OutboxTable {
  /** Takes out the first `n`, in the order in which each transaction published them. */
  take(n: number): readonly NewEvent[]
  /** One of those cannot be stored: it stays, out of the way, until a person has looked at it. */
  keep(event: NewEvent, because: string): void
}

/** Where nobody else has transactions. */
export const NO_OUTBOX: OutboxTable = { take: () => [], keep: () => {} }

export interface LimitTable {
  get(name: string): LimitState | undefined
  put(name: string, state: LimitState): void
  /** Older slots of a limit, by the number of the page. */
  page(name: string, n: number): SlotPage | undefined
  putPage(name: string, n: number, page: SlotPage): void
  /** Removes pages all of whose slots lie before the moment. */
  dropPages(name: string, before: Millis): void
  /** Forgets limits whose state no longer matters. */
  forget(now: Millis): void
  ticket(ticket: string): TicketRow | undefined
  putTicket(row: TicketRow): void
  removeTicket(ticket: string): void
  /** Slots of this limit that are not used and lie at or before a moment, first come first. */
  unused(name: string, upto: Millis): readonly TicketRow[]
  /** Of its slots that are not used: who came last, and the latest moment. */
  lastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined
  ticketsBefore(moment: Millis, n: number): readonly TicketRow[]
}

export interface SmallTables {
  process(id: string): ProcessRow | undefined
  putProcess(id: string, row: ProcessRow): void
  forgetProcesses(before: Millis): void
  permits(name: string): readonly { readonly process: string; readonly n: number; readonly until: Millis }[]
  putPermit(name: string, process: string, permit: { readonly n: number; readonly until: Millis }): void
  removePermit(name: string, process: string): void
  pauseOf(flow: string): PauseRow | undefined
  putPause(flow: string, pause: PauseRow | undefined): void
  pressure(flow: string): Pressure | undefined
  putPressure(flow: string, pressure: Pressure): void
  /** Whether this event was replayed under this name before; remembers that it now was. */
  replayedBefore(replay: string, event: number, now: Millis): boolean
  forgetReplays(before: Millis): void
}

export interface DocTable {
  get(kind: string, id: string): Doc | undefined
  put(doc: Doc): void
  remove(kind: string, id: string): void
  page(kind: string, after: string, n: number): readonly Doc[]
  lastAudit(): AuditRecord | undefined
  addAudit(record: AuditRecord): void
}

export interface RecordQueries {
  find<K extends RecordKind>(call: FindCall<K>): Page<K>
  count(call: CountCall): { readonly count: number; readonly next: string | undefined }
  get<K extends RecordKind>(kind: K, id: string): Records[K] | undefined
  stats(now: Millis): TableStats
}

export interface Page<K extends RecordKind> {
  readonly items: readonly Records[K][]
  readonly next: string | undefined
}

export interface TableStats {
  readonly flows: readonly {
    readonly flow: string
    readonly lanes: number
    readonly live: number
    readonly due: Millis | undefined
    readonly paused: PauseRow | undefined
  }[]
  readonly letters: number
  readonly marks: readonly { readonly reason: Mark['reason']; readonly count: number; readonly oldest: Millis }[]
  readonly limits: StatsReply['limits']
  readonly bytes: number
}

export interface Tables {
  /** Random at creation: makes run ids unique over all stores. */
  readonly name: string
  readonly draw: () => number
  /** What a call is about, said before it is asked for: a store that locks what is read locks it in one order. */
  readonly expect?: (lanes: readonly LaneId[], identities: readonly Identity[]) => void
  /** Whether so much more would be within what the store may take. */
  hasRoomFor(bytes: number): boolean
  routes(): number
  raiseRoutes(): void
  readonly lanes: LaneTable
  readonly places: PlaceTable
  readonly events: EventTable
  readonly runs: RunTable
  readonly letters: LetterTable
  readonly marks: MarkTable
  readonly outbox: OutboxTable
  readonly limits: LimitTable
  readonly small: SmallTables
  readonly docs: DocTable
  readonly records: RecordQueries
}
