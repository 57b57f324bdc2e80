// `Tables` is what a store keeps: plain rows, read and written one by one within a commit that the store makes atomic. All rules
// are in the code above this interface, once; stores differ only below it.
import type { Millis } from '../../clock.ts'
import type { Event } from '../../model/event.ts'
import type { EventIdentity, LaneId } from '../../model/identity.ts'
import type { Lane, LaneHealth, Rank } from '../../model/lane.ts'
import type { LimitParameters, LimitState, SlotPage } from '../../model/limit.ts'
import type { Pressure } from '../../model/place.ts'
import type { Skip } from '../../model/routing.ts'
import type {
  AuditRecord,
  CountCall,
  Doc,
  FindCall,
  FindReply,
  CountReply,
  FlowStats,
  Reply,
  UnroutedRecord,
  DeadLetterRecord,
  PurgeScope,
  UnroutedFlow,
  EventToStore,
  Receipt,
  RecordKind,
  RecordTypes,
  RunRecord,
  StatsReply,
} from '../contract/index.ts'

/** `EventRow` is an event as a store keeps it. `seq` is its row number: events of one store are numbered as they arrive. */
export interface EventRow extends Event {
  readonly seq: number
  readonly identity: EventIdentity
  readonly dedupeUntil: Millis
  readonly request: Uint8Array
  readonly lanes: readonly LaneId[]
  readonly skips: readonly Skip[]
  /** The hash of the body after its bytes were removed; '' while they exist. */
  readonly purgedHash: string
  /** The event is to be purged as soon as no lane needs it. */
  readonly doomed: boolean
}

/** `EventArrival` is what the store adds to an event. */
export type EventArrival = Pick<EventRow, 'arrived' | 'dedupeUntil' | 'lanes' | 'skips'>

/** `PlacedEvent` is the part of an event that a run needs. */
export interface PlacedEvent extends Event {
  readonly seq: number
}

/** `PlacementRow` is the membership of an event in a lane: the event `event` has the position `pos`. */
export interface PlacementRow {
  readonly pos: number
  readonly event: number
  readonly size: number
}

/** `WaitingPlacement` is the placement of an event that waits or runs. */
export interface WaitingPlacement extends PlacementRow {
  /** Arrival + max (L3); for a replay, its arrival. */
  readonly cap: Millis
  /** The id of the replay that placed the event. Only with rank 1. */
  readonly replay?: string
}

export interface DeadLetterRow extends Omit<DeadLetterRecord, 'events'> {
  /** Dead letters of a lane run again in the order in which they died. */
  readonly order: number
  readonly group: string
  /** The replay that its events belong to; '' for live events. */
  readonly replay: string
  readonly placements: readonly PlacementRow[]
}

export interface RunRow extends Omit<RunRecord, 'events'> {
  readonly events: readonly number[]
}

export interface UnroutedRow extends UnroutedFlow {
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
  /** The reply to that request, as JSON. */
  readonly answer: string
}

/** `TicketRow` is a slot that was given to a ticket, in all its limits at once. */
export interface TicketRow {
  readonly ticket: string
  readonly order: number
  readonly at: Millis
  readonly used: boolean
  readonly limits: readonly (LimitParameters & { readonly name: string })[]
}

export type PauseRow = NonNullable<FlowStats['paused']>

export interface ReadyQuery {
  readonly flow: string
  readonly health: LaneHealth
  readonly now: Millis
  readonly n: number
}

export interface GroupQuery {
  readonly flow: string
  readonly healths: readonly LaneHealth[]
  readonly now: Millis
  /** Groups with this many live runs are passed over. */
  readonly maxPerGroup: number
  readonly n: number
}

export interface LaneTable {
  get(id: LaneId): Lane | undefined
  put(lane: Lane): void
  /** Stores the first lane of its queue, whose new run took the first waiting events: `before` and after. Most such runs end soon. */
  putWithNewRun(before: Lane, lane: Lane): void
  remove(lane: Lane): void
  /** Returns ready lanes in the order (deadline, ticket). */
  findReady(query: ReadyQuery): readonly Lane[]
  /**
   * Returns the first ready lanes of the next `n` groups: groups served longest ago first, then by the (deadline, ticket) of the
   * lanes.
   */
  findGroupHeads(query: GroupQuery): readonly Lane[]
  /** Records that the lane's group was served. `order` is a number of the counter. */
  recordGroupServed(lane: Lane, order: number, now: Millis): void
  /** Visits `n` groups last served before `before`. It forgets those in which no lane has a deadline; the others count from now. */
  forgetGroupTurns(before: Millis, now: Millis, n: number): number
  /** Returns the earliest deadline of the flow among the lanes with these healths. */
  findNextDeadline(flow: string, healths: readonly LaneHealth[]): Millis | undefined
  /** Returns lanes that were kept only to remember their last run, and whose time is over. */
  findStale(now: Millis, n: number): readonly Lane[]
  /**
   * Returns lanes of the flow with an open window beyond the `most` waiting lanes per tenant, oldest first. Lanes with a run, even
   * between attempts, do not count.
   */
  findOverTenantLimit(flow: string, most: number, now: Millis): readonly Lane[]
}

export interface PlacementTable {
  add(lane: Lane, rank: Rank, placement: WaitingPlacement): void
  /** Returns the first `n` placements by position. */
  findFirst(lane: Lane, rank: Rank, n: number): readonly WaitingPlacement[]
  findUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[]
  /** Removes and returns the placements up to `pos`. */
  takeUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[]
  remove(lane: Lane, rank: Rank, positions: readonly number[]): void
  findByEvent(lane: Lane, event: number): readonly { readonly rank: Rank; readonly placement: WaitingPlacement }[]
}

export interface EventTable {
  /** Returns the event's row number, or false if the id or the identity is taken. */
  insert(event: EventToStore, arrival: EventArrival): number | false
  findById(id: string): EventRow | undefined
  findByIdentity(identity: EventIdentity): EventRow | undefined
  findBySeq(seq: number): EventRow | undefined
  /** Returns whether the bytes of the event still exist. */
  hasBody(seq: number): boolean
  /** Returns the events at these placements, each once, in any order. Events that are gone are left out. */
  findPlaced(placements: readonly PlacementRow[]): readonly PlacedEvent[]
  /** The identity may be used again, because its dedupe time is over. */
  forgetIdentity(seq: number): void
  /** Stores the lanes of an event and the flows that did not take it. */
  setRouting(seq: number, routing: Pick<EventRow, 'lanes' | 'skips'>): void
  wipe(seq: number, hash: string): void
  doom(seq: number): void
  findDoomed(after: number, n: number): readonly EventRow[]
  /** Returns the first events in the scope that still have their bytes. */
  findInScope(scope: PurgeScope, n: number): readonly EventRow[]
  /** Returns those of the events that are in the scope. */
  filterByScope(seqs: readonly number[], scope: PurgeScope): readonly number[]
  addReceipt(seq: number, receipt: Receipt): void
  findReceipts(seq: number): readonly Receipt[]
  /** Returns events in order of arrival, after `seq`. */
  findOldest(after: number, n: number): readonly EventRow[]
  /** Returns the same rows without their content, so that a scan for old rows reads no bodies. */
  findArrivals(after: number, n: number): readonly Pick<EventRow, 'seq' | 'arrived'>[]
  remove(seq: number): void
}

export interface RunTable {
  /** `isFirst`: no record of the run exists yet. An overwritten record keeps its first start, because records are ordered by it. */
  put(run: RunRow, isFirst: boolean): void
  /** Returns the newest `n` records with a number below `before`, newest first. */
  findByLane(lane: LaneId, n: number, before?: number): readonly RunRow[]
  remove(id: string): void
  /** Returns runs in the order in which they began, after the run with that number. */
  findOldest(after: number, n: number): readonly RunRow[]
}

export interface DeadLetterTable {
  get(id: string): DeadLetterRow | undefined
  put(deadLetter: DeadLetterRow): void
  remove(id: string): void
  findByLane(lane: LaneId): readonly DeadLetterRow[]
  /** Returns all events that the lane's dead letters hold. */
  findEventSeqs(lane: LaneId): readonly number[]
  /** Returns the queued dead letter of the lane that died first. */
  findNextQueued(lane: LaneId): DeadLetterRow | undefined
  /** Returns dead letters that died before `moment`, are not queued and block no lane. */
  findExpirable(before: Millis, n: number): readonly DeadLetterRow[]
}

export interface UnroutedTable {
  get(id: number): UnroutedRow | undefined
  put(entry: UnroutedRow): void
  remove(id: number): void
  findDue(now: Millis, reasons: readonly string[], flows: readonly string[], n: number): readonly UnroutedRow[]
  findByEvent(event: number): readonly UnroutedRow[]
}

/** `OutboxTable` holds events that users published inside their own, committed transactions (L17). */
export interface OutboxTable {
  /** Removes and returns the first `n` events, in the order in which each transaction published them. */
  take(n: number): readonly EventToStore[]
  /** Keeps an event that cannot be stored aside, until an operator has checked it. */
  refuse(event: EventToStore, because: string): void
}

/** `EMPTY_OUTBOX` is for stores without user transactions. */
export const EMPTY_OUTBOX: OutboxTable = { take: () => [], refuse: () => {} }

export interface LimitTable {
  get(name: string): LimitState | undefined
  put(name: string, state: LimitState): void
  /** Returns a page of older slots by its number. */
  getPage(name: string, n: number): SlotPage | undefined
  putPage(name: string, n: number, page: SlotPage): void
  /** Removes the pages whose slots are all before `before`. */
  removePagesBefore(name: string, before: Millis): void
  /** Removes limits whose state no longer matters. */
  forgetIdle(now: Millis): void
  getTicket(ticket: string): TicketRow | undefined
  putTicket(row: TicketRow): void
  removeTicket(ticket: string): void
  /** Returns unused slots of this limit at or before `upto`, in the order of their tickets. */
  findUnused(name: string, upto: Millis): readonly TicketRow[]
  /** Returns the newest ticket among the unused slots, and the latest slot time. */
  findLastUnused(name: string): { readonly ticket: string; readonly at: Millis } | undefined
  findTicketsBefore(before: Millis, n: number): readonly TicketRow[]
}

export interface SmallTables {
  getProcess(id: string): ProcessRow | undefined
  putProcess(id: string, row: ProcessRow): void
  forgetProcesses(before: Millis): void
  findPermits(name: string): readonly { readonly process: string; readonly n: number; readonly until: Millis }[]
  putPermit(name: string, process: string, permit: { readonly n: number; readonly until: Millis }): void
  removePermit(name: string, process: string): void
  /** Removes permits of all names that ended at or before `before`. */
  forgetPermits(before: Millis): void
  getPause(flow: string): PauseRow | undefined
  putPause(flow: string, pause: PauseRow | undefined): void
  getPressure(flow: string): Pressure | undefined
  putPressure(flow: string, pressure: Pressure): void
  /** Records that this event was replayed under this name, and returns whether it had been before. */
  markReplayed(replay: string, event: number, now: Millis): boolean
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
  find<K extends RecordKind>(call: FindCall<K>): RecordPage<K>
  count(call: CountCall): RecordCount
  get<K extends RecordKind>(kind: K, id: string): RecordTypes[K] | undefined
  stats(now: Millis): TableStats
}

/** `ResolveEventIds` returns the ids of the events that still exist. */
export type ResolveEventIds = (seqs: readonly number[]) => readonly string[]

export function toRunRecord(row: RunRow, ids: ResolveEventIds): RunRecord {
  return { ...row, events: ids(row.events) }
}

export function toDeadLetterRecord(row: DeadLetterRow, ids: ResolveEventIds): DeadLetterRecord {
  const { order: _order, group: _group, replay: _replay, placements, ...deadLetter } = row
  return { ...deadLetter, events: ids(placements.map((placement) => placement.event)) }
}

export function toUnroutedRecord(row: UnroutedRow, ids: ResolveEventIds): UnroutedRecord {
  const { id, flow, reason, error, since, tries } = row
  return { id, flow, reason, error, since, tries, event: ids([row.event])[0] ?? '' }
}

/** `ReplyBody` is a reply without the time and the epoch, which `TableStore` adds to each reply. */
export type ReplyBody<R> = R extends Reply ? Omit<R, keyof Reply> : never

export type RecordPage<K extends RecordKind> = ReplyBody<FindReply<K>>

export type RecordCount = ReplyBody<CountReply>

export type TableStats = Omit<ReplyBody<StatsReply>, 'durable' | 'vacuum' | 'memoryUsed'>

export interface Tables {
  /** A random name, set at creation. It makes run ids unique over all stores. */
  readonly name: string
  readonly draw: () => number
  /** Announces what a call will read. A store that locks the rows it reads then locks them in one order. */
  readonly prefetch?: (lanes: readonly LaneId[], identities: readonly EventIdentity[]) => void
  /** Returns whether this many more bytes fit into the size limit of the store. */
  hasRoomFor(bytes: number): boolean
  routes(): number
  raiseRoutes(): void
  readonly lanes: LaneTable
  readonly placements: PlacementTable
  readonly events: EventTable
  readonly runs: RunTable
  readonly deadLetters: DeadLetterTable
  readonly unrouted: UnroutedTable
  readonly outbox: OutboxTable
  readonly limits: LimitTable
  readonly small: SmallTables
  readonly docs: DocTable
  readonly records: RecordQueries
}
