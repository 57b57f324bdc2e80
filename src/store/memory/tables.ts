// The memory tables are the executable specification of a store: maps and lists, with full scans.
import { NEVER, type Millis } from '../../clock.ts'
import { isEmptyLane, isLiveRun, type Lane, type LaneHealth, type Rank } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { EventToStore, PurgeScope, Receipt } from '../contract/index.ts'
import type {
  EventArrival,
  EventRow,
  EventTable,
  GroupQuery,
  LaneTable,
  DeadLetterRow,
  DeadLetterTable,
  UnroutedRow,
  UnroutedTable,
  PlacedEvent,
  PlacementRow,
  PlacementTable,
  ReadyQuery,
  RunRow,
  RunTable,
  WaitingPlacement,
} from '../core/tables.ts'
import { parseRunNumber } from '../core/commit-context.ts'

export class MemoryLanes implements LaneTable {
  readonly all: Map<LaneId, Lane> = new Map()
  readonly #served = new Map<string, { readonly turn: number; readonly at: Millis }>()

  get(id: LaneId): Lane | undefined {
    return this.all.get(id)
  }

  put(lane: Lane): void {
    this.all.set(lane.id, lane)
  }

  putWithNewRun(_before: Lane, lane: Lane): void {
    this.put(lane)
  }

  remove(lane: Lane): void {
    this.all.delete(lane.id)
  }

  findReady({ flow, health, now, n }: ReadyQuery): readonly Lane[] {
    return [...this.#findPassed(flow, now)]
      .filter((lane) => lane.health === health)
      .toSorted(compareByDeadline)
      .slice(0, n)
  }

  findGroupHeads({ flow, healths, now, maxPerGroup, n }: GroupQuery): readonly Lane[] {
    const live = this.#countLive(flow, now)
    const heads = new Map<string, Lane>()
    for (const lane of this.#findPassed(flow, now)) {
      const head = heads.get(lane.group)
      if (healths.includes(lane.health) && (head === undefined || compareByDeadline(lane, head) < 0))
        heads.set(lane.group, lane)
    }
    const served = (lane: Lane): number => this.#served.get(groupKey(lane))?.turn ?? 0
    return [...heads.values()]
      .filter((lane) => (live.get(lane.group) ?? 0) < maxPerGroup)
      .toSorted((one, other) => served(one) - served(other) || compareByDeadline(one, other))
      .slice(0, n)
  }

  recordGroupServed(lane: Lane, turn: number, now: Millis): void {
    this.#served.set(groupKey(lane), { turn, at: now })
  }

  forgetGroupTurns(before: Millis, now: Millis, n: number): number {
    const old = [...this.#served].filter(([, { at }]) => at <= before).slice(0, n)
    const waits = new Set([...this.all.values()].filter((lane) => lane.due < NEVER).map(groupKey))
    for (const [group, { turn }] of old) {
      if (waits.has(group)) this.#served.set(group, { turn, at: now })
      else this.#served.delete(group)
    }
    return old.length
  }

  findNextDeadline(flow: string, healths: readonly LaneHealth[]): Millis | undefined {
    const standing = [...this.all.values()].filter((lane) => lane.flow === flow && healths.includes(lane.health))
    const due = standing.reduce((least, lane) => Math.min(least, lane.due), NEVER)
    return due === NEVER ? undefined : due
  }

  #countLive(flow: string, now: Millis): ReadonlyMap<string, number> {
    const live = new Map<string, number>()
    for (const { flow: its, group, run } of this.all.values()) {
      if (its === flow && run !== undefined && isLiveRun(run, now)) live.set(group, (live.get(group) ?? 0) + 1)
    }
    return live
  }

  findStale(now: Millis, n: number): readonly Lane[] {
    return [...this.all.values()].filter((lane) => isEmptyLane(lane, now)).slice(0, n)
  }

  findOverTenantLimit(flow: string, most: number, now: Millis): readonly Lane[] {
    const open = [...this.all.values()].filter(
      (lane) => lane.flow === flow && lane.waiting > 0 && lane.run === undefined,
    )
    const byTenant = Map.groupBy(open, (lane) => lane.tenant)
    return [...byTenant].flatMap(([tenant, lanes]) =>
      tenant === ''
        ? []
        : lanes
            .toSorted((one, other) => one.row - other.row)
            .slice(0, Math.max(0, lanes.length - most))
            .filter((lane) => lane.window > now),
    )
  }

  *#findPassed(flow: string, now: Millis): Iterable<Lane> {
    for (const lane of this.all.values()) if (lane.flow === flow && lane.due <= now) yield lane
  }
}

function compareByDeadline(one: Lane, other: Lane): number {
  return one.due - other.due || one.ticket - other.ticket
}

function groupKey({ flow, group }: Lane): string {
  return JSON.stringify([flow, group])
}

export class MemoryPlacements implements PlacementTable {
  readonly #rows = new Map<string, WaitingPlacement[]>()

  add(lane: Lane, rank: Rank, placement: WaitingPlacement): void {
    this.#rows.set(`${lane.row}/${rank}`, [...this.#getRows(lane, rank), placement])
  }

  findFirst(lane: Lane, rank: Rank, n: number): readonly WaitingPlacement[] {
    return this.#getRows(lane, rank).slice(0, n)
  }

  findUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    return this.#getRows(lane, rank).filter((placement) => placement.pos <= pos)
  }

  takeUpTo(lane: Lane, rank: Rank, pos: number): readonly WaitingPlacement[] {
    const taken = this.findUpTo(lane, rank, pos)
    this.#filterRows(lane, rank, (placement) => placement.pos > pos)
    return taken
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    const gone = new Set(positions)
    this.#filterRows(lane, rank, (placement) => !gone.has(placement.pos))
  }

  findByEvent(lane: Lane, event: number): readonly { readonly rank: Rank; readonly placement: WaitingPlacement }[] {
    return ([0, 1] as const).flatMap((rank) =>
      this.#getRows(lane, rank)
        .filter((placement) => placement.event === event)
        .map((placement) => ({ rank, placement })),
    )
  }

  #getRows(lane: Lane, rank: Rank): readonly WaitingPlacement[] {
    return this.#rows.get(`${lane.row}/${rank}`) ?? []
  }

  #filterRows(lane: Lane, rank: Rank, keeps: (placement: WaitingPlacement) => boolean): void {
    const kept = this.#getRows(lane, rank).filter(keeps)
    if (kept.length > 0) this.#rows.set(`${lane.row}/${rank}`, kept)
    else this.#rows.delete(`${lane.row}/${rank}`)
  }
}

export class MemoryEvents implements EventTable {
  readonly all: Map<number, EventRow> = new Map()
  readonly #receipts = new Map<number, Receipt[]>()
  readonly #ids = new Map<string, number>()
  readonly #identities = new Map<string, number>()
  #last = 0

  insert(event: EventToStore, arrival: EventArrival): number | false {
    if (this.#ids.has(event.id) || this.#identities.has(event.identity)) return false
    const seq = ++this.#last
    const row = { ...event, ...arrival, seq, body: Uint8Array.from(event.body), purgedHash: '', doomed: false }
    this.all.set(seq, row)
    this.#ids.set(event.id, seq)
    this.#identities.set(event.identity, seq)
    return seq
  }

  findById(id: string): EventRow | undefined {
    return this.findBySeq(this.#ids.get(id) ?? 0)
  }

  findByIdentity(identity: string): EventRow | undefined {
    return this.findBySeq(this.#identities.get(identity) ?? 0)
  }

  /** Returns a copy of the body, so that a caller that changes it changes nothing in the store. */
  findBySeq(seq: number): EventRow | undefined {
    const event = this.all.get(seq)
    return event === undefined ? undefined : { ...event, body: event.body.slice() }
  }

  hasBody(seq: number): boolean {
    return this.all.get(seq)?.purgedHash === ''
  }

  findPlaced(placements: readonly PlacementRow[]): readonly PlacedEvent[] {
    return placements.flatMap((placement) => this.findBySeq(placement.event) ?? [])
  }

  forgetIdentity(seq: number): void {
    this.#identities.delete(this.all.get(seq)?.identity ?? '')
  }

  setRouting(seq: number, { lanes, skips }: Pick<EventRow, 'lanes' | 'skips'>): void {
    this.#change(seq, { lanes, skips })
  }

  wipe(seq: number, hash: string): void {
    const none = new Uint8Array()
    this.#change(seq, { body: none, request: none, attributes: '', subject: '', purgedHash: hash, doomed: false })
    this.#receipts.delete(seq)
  }

  doom(seq: number): void {
    this.#change(seq, { doomed: true })
  }

  findDoomed(after: number, n: number): readonly EventRow[] {
    return this.findOldest(after, this.all.size)
      .filter((event) => event.doomed)
      .slice(0, n)
  }

  findInScope(scope: PurgeScope, n: number): readonly EventRow[] {
    return [...this.all.values()].filter((event) => event.purgedHash === '' && isInScope(event, scope)).slice(0, n)
  }

  filterByScope(seqs: readonly number[], scope: PurgeScope): readonly number[] {
    return seqs.filter((seq) => {
      const event = this.all.get(seq)
      return event !== undefined && isInScope(event, scope)
    })
  }

  addReceipt(seq: number, receipt: Receipt): void {
    this.#receipts.set(seq, [...this.findReceipts(seq), receipt].slice(-RECEIPTS_KEPT))
  }

  findReceipts(seq: number): readonly Receipt[] {
    return this.#receipts.get(seq) ?? []
  }

  findOldest(after: number, n: number): readonly EventRow[] {
    return [...this.all.values()].filter((event) => event.seq > after).slice(0, n)
  }

  findArrivals(after: number, n: number): readonly EventRow[] {
    return this.findOldest(after, n)
  }

  remove(seq: number): void {
    const event = this.all.get(seq)
    if (event === undefined) return
    this.#ids.delete(event.id)
    if (this.#identities.get(event.identity) === seq) this.#identities.delete(event.identity)
    this.#receipts.delete(seq)
    this.all.delete(seq)
  }

  #change(seq: number, change: Partial<EventRow>): void {
    const event = this.all.get(seq)
    if (event !== undefined) this.all.set(seq, { ...event, ...change })
  }
}

function isInScope(event: EventRow, { tenant, subject, id }: PurgeScope): boolean {
  return (
    tenant !== '' &&
    subject !== '' &&
    (tenant === undefined || event.tenant === tenant) &&
    (subject === undefined || event.subject === subject) &&
    (id === undefined || event.id === id)
  )
}

const RECEIPTS_KEPT = 100

export class MemoryRuns implements RunTable {
  readonly all: Map<string, RunRow> = new Map()

  put(run: RunRow): void {
    const started = Math.min(run.started, this.all.get(run.id)?.started ?? run.started)
    this.all.set(run.id, { ...run, started })
  }

  findByLane(lane: LaneId, n: number, before: number = NEVER): readonly RunRow[] {
    return this.findOldest(0, this.all.size)
      .filter((run) => run.lane === lane && parseRunNumber(run.id) < before)
      .slice(-n)
      .toReversed()
  }

  remove(id: string): void {
    this.all.delete(id)
  }

  findOldest(after: number, n: number): readonly RunRow[] {
    return [...this.all.values()]
      .filter((run) => parseRunNumber(run.id) > after)
      .toSorted((one, other) => parseRunNumber(one.id) - parseRunNumber(other.id))
      .slice(0, n)
  }
}

export class MemoryDeadLetters implements DeadLetterTable {
  readonly all: Map<string, DeadLetterRow> = new Map()

  get(id: string): DeadLetterRow | undefined {
    return this.all.get(id)
  }

  put(deadLetter: DeadLetterRow): void {
    this.all.set(deadLetter.id, deadLetter)
  }

  remove(id: string): void {
    this.all.delete(id)
  }

  findByLane(lane: LaneId): readonly DeadLetterRow[] {
    return [...this.all.values()].filter((deadLetter) => deadLetter.lane === lane)
  }

  findEventSeqs(lane: LaneId): readonly number[] {
    return this.findByLane(lane).flatMap((deadLetter) => deadLetter.placements.map((placement) => placement.event))
  }

  findNextQueued(lane: LaneId): DeadLetterRow | undefined {
    const queued = this.findByLane(lane).filter((deadLetter) => deadLetter.state === 'queued')
    return queued.toSorted((one, other) => one.order - other.order)[0]
  }

  findExpirable(before: Millis, n: number): readonly DeadLetterRow[] {
    const old = (deadLetter: DeadLetterRow): boolean =>
      deadLetter.at <= before && deadLetter.state === 'dead' && !deadLetter.blocks
    return [...this.all.values()].filter(old).slice(0, n)
  }
}

export class MemoryUnrouted implements UnroutedTable {
  readonly all: Map<number, UnroutedRow> = new Map()

  get(id: number): UnroutedRow | undefined {
    return this.all.get(id)
  }

  put(entry: UnroutedRow): void {
    this.all.set(entry.id, entry)
  }

  remove(id: number): void {
    this.all.delete(id)
  }

  findDue(...[now, reasons, flows, n]: Parameters<UnroutedTable['findDue']>): readonly UnroutedRow[] {
    return [...this.all.values()]
      .filter(
        (entry) =>
          entry.due <= now && reasons.includes(entry.reason) && (entry.flow === '' || flows.includes(entry.flow)),
      )
      .toSorted((one, other) => one.due - other.due || one.id - other.id)
      .slice(0, n)
  }

  findByEvent(event: number): readonly UnroutedRow[] {
    return [...this.all.values()].filter((entry) => entry.event === event)
  }
}
