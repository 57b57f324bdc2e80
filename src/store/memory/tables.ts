// The executable specification of what a store keeps: maps and lists, scanned without shame.
import { NEVER, type Millis } from '../../clock.ts'
import { isEmpty, isLive, type Lane, type Line, type Rank } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { NewEvent, Receipt } from '../contract/index.ts'
import type {
  Arrival,
  EventRow,
  EventTable,
  LaneTable,
  LetterRow,
  LetterTable,
  MarkRow,
  MarkTable,
  PlacedEvent,
  PlaceRow,
  PlaceTable,
  RunRow,
  RunTable,
} from '../rules/tables.ts'
import { runNumber } from '../rules/work.ts'

export class MemoryLanes implements LaneTable {
  readonly all: Map<LaneId, Lane> = new Map()
  readonly #served = new Map<string, { readonly turn: number; readonly at: Millis }>()

  get(id: LaneId): Lane | undefined {
    return this.all.get(id)
  }

  put(lane: Lane): void {
    this.all.set(lane.id, lane)
  }

  begun(_before: Lane, lane: Lane): void {
    this.put(lane)
  }

  remove(lane: Lane): void {
    this.all.delete(lane.id)
  }

  ready({ flow, line, now, n }: Parameters<LaneTable['ready']>[0]): readonly Lane[] {
    return [...this.#passed(flow, now)]
      .filter((lane) => lane.line === line)
      .toSorted(byTurn)
      .slice(0, n)
  }

  inTurn({ flow, lines, now, perGroup, n }: Parameters<LaneTable['inTurn']>[0]): readonly Lane[] {
    const live = this.#live(flow, now)
    const heads = new Map<string, Lane>()
    for (const lane of this.#passed(flow, now)) {
      const head = heads.get(lane.group)
      if (lines.includes(lane.line) && (head === undefined || byTurn(lane, head) < 0)) heads.set(lane.group, lane)
    }
    const served = (lane: Lane): number => this.#served.get(groupOf(lane))?.turn ?? 0
    return [...heads.values()]
      .filter((lane) => (live.get(lane.group) ?? 0) < perGroup)
      .toSorted((one, other) => served(one) - served(other) || byTurn(one, other))
      .slice(0, n)
  }

  tookTurn(lane: Lane, turn: number, now: Millis): void {
    this.#served.set(groupOf(lane), { turn, at: now })
  }

  forgetTurns(before: Millis, now: Millis, n: number): number {
    const old = [...this.#served].filter(([, { at }]) => at <= before).slice(0, n)
    const waits = new Set([...this.all.values()].filter((lane) => lane.due < NEVER).map(groupOf))
    for (const [group, { turn }] of old) {
      if (waits.has(group)) this.#served.set(group, { turn, at: now })
      else this.#served.delete(group)
    }
    return old.length
  }

  head(flow: string, lines: readonly Line[]): Millis | undefined {
    const standing = [...this.all.values()].filter((lane) => lane.flow === flow && lines.includes(lane.line))
    const due = standing.reduce((least, lane) => Math.min(least, lane.due), NEVER)
    return due === NEVER ? undefined : due
  }

  #live(flow: string, now: Millis): ReadonlyMap<string, number> {
    const live = new Map<string, number>()
    for (const { flow: its, group, run } of this.all.values()) {
      if (its === flow && run !== undefined && isLive(run, now)) live.set(group, (live.get(group) ?? 0) + 1)
    }
    return live
  }

  stale(now: Millis, n: number): readonly Lane[] {
    return [...this.all.values()].filter((lane) => isEmpty(lane, now)).slice(0, n)
  }

  beyond(flow: string, most: number, now: Millis): readonly Lane[] {
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

  *#passed(flow: string, now: Millis): Iterable<Lane> {
    for (const lane of this.all.values()) if (lane.flow === flow && lane.due <= now) yield lane
  }
}

function byTurn(one: Lane, other: Lane): number {
  return one.due - other.due || one.ticket - other.ticket
}

function groupOf({ flow, group }: Lane): string {
  return JSON.stringify([flow, group])
}

export class MemoryPlaces implements PlaceTable {
  readonly #rows = new Map<string, PlaceRow[]>()

  add(lane: Lane, rank: Rank, place: PlaceRow): void {
    this.#rows.set(`${lane.row}/${rank}`, [...this.#of(lane, rank), place])
  }

  first(lane: Lane, rank: Rank, n: number): readonly PlaceRow[] {
    return this.#of(lane, rank).slice(0, n)
  }

  upto(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    return this.#of(lane, rank).filter((place) => place.pos <= pos)
  }

  take(lane: Lane, rank: Rank, pos: number): readonly PlaceRow[] {
    const taken = this.upto(lane, rank, pos)
    this.#keep(lane, rank, (place) => place.pos > pos)
    return taken
  }

  remove(lane: Lane, rank: Rank, positions: readonly number[]): void {
    const gone = new Set(positions)
    this.#keep(lane, rank, (place) => !gone.has(place.pos))
  }

  of(lane: Lane, event: number): readonly { readonly rank: Rank; readonly place: PlaceRow }[] {
    return ([0, 1] as const).flatMap((rank) =>
      this.#of(lane, rank)
        .filter((place) => place.event === event)
        .map((place) => ({ rank, place })),
    )
  }

  #of(lane: Lane, rank: Rank): readonly PlaceRow[] {
    return this.#rows.get(`${lane.row}/${rank}`) ?? []
  }

  #keep(lane: Lane, rank: Rank, keeps: (place: PlaceRow) => boolean): void {
    const kept = this.#of(lane, rank).filter(keeps)
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

  insert(event: NewEvent, arrival: Arrival): number | false {
    if (this.#ids.has(event.id) || this.#identities.has(event.identity)) return false
    const seq = ++this.#last
    const row = { ...event, ...arrival, seq, body: Uint8Array.from(event.body), purgedHash: '', doomed: false }
    this.all.set(seq, row)
    this.#ids.set(event.id, seq)
    this.#identities.set(event.identity, seq)
    return seq
  }

  byId(id: string): EventRow | undefined {
    return this.bySeq(this.#ids.get(id) ?? 0)
  }

  byIdentity(identity: string): EventRow | undefined {
    return this.bySeq(this.#identities.get(identity) ?? 0)
  }

  /** With a body of its own: who writes into it changes it for nobody else. */
  bySeq(seq: number): EventRow | undefined {
    const event = this.all.get(seq)
    return event === undefined ? undefined : { ...event, body: event.body.slice() }
  }

  hasBytes(seq: number): boolean {
    return this.all.get(seq)?.purgedHash === ''
  }

  at(places: readonly PlaceRow[]): readonly PlacedEvent[] {
    return places.flatMap((place) => this.bySeq(place.event) ?? [])
  }

  forgetIdentity(seq: number): void {
    this.#identities.delete(this.all.get(seq)?.identity ?? '')
  }

  setLanes(seq: number, lanes: readonly LaneId[]): void {
    this.#change(seq, { lanes })
  }

  wipe(seq: number, hash: string): void {
    const none = new Uint8Array()
    this.#change(seq, { body: none, request: none, attributes: '', subject: '', purgedHash: hash, doomed: false })
    this.#receipts.delete(seq)
  }

  doom(seq: number): void {
    this.#change(seq, { doomed: true })
  }

  doomed(after: number, n: number): readonly EventRow[] {
    return this.oldest(after, this.all.size)
      .filter((event) => event.doomed)
      .slice(0, n)
  }

  ofTenant(tenant: string, n: number): readonly EventRow[] {
    return [...this.all.values()].filter((event) => event.tenant === tenant && event.purgedHash === '').slice(0, n)
  }

  addReceipt(seq: number, receipt: Receipt): void {
    this.#receipts.set(seq, [...this.receipts(seq), receipt].slice(-RECEIPTS_KEPT))
  }

  receipts(seq: number): readonly Receipt[] {
    return this.#receipts.get(seq) ?? []
  }

  oldest(after: number, n: number): readonly EventRow[] {
    return [...this.all.values()].filter((event) => event.seq > after).slice(0, n)
  }

  arrivals(after: number, n: number): readonly EventRow[] {
    return this.oldest(after, n)
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

const RECEIPTS_KEPT = 100

export class MemoryRuns implements RunTable {
  readonly all: Map<string, RunRow> = new Map()

  put(run: RunRow): void {
    const started = Math.min(run.started, this.all.get(run.id)?.started ?? run.started)
    this.all.set(run.id, { ...run, started })
  }

  ofLane(lane: LaneId, n: number): readonly RunRow[] {
    return this.oldest(0, this.all.size)
      .filter((run) => run.lane === lane)
      .slice(-n)
      .toReversed()
  }

  remove(id: string): void {
    this.all.delete(id)
  }

  oldest(after: number, n: number): readonly RunRow[] {
    return [...this.all.values()]
      .filter((run) => runNumber(run.id) > after)
      .toSorted((one, other) => runNumber(one.id) - runNumber(other.id))
      .slice(0, n)
  }
}

export class MemoryLetters implements LetterTable {
  readonly all: Map<string, LetterRow> = new Map()

  get(id: string): LetterRow | undefined {
    return this.all.get(id)
  }

  put(letter: LetterRow): void {
    this.all.set(letter.id, letter)
  }

  remove(id: string): void {
    this.all.delete(id)
  }

  ofLane(lane: LaneId): readonly LetterRow[] {
    return [...this.all.values()].filter((letter) => letter.lane === lane)
  }

  eventsOf(lane: LaneId): readonly number[] {
    return this.ofLane(lane).flatMap((letter) => letter.places.map((place) => place.event))
  }

  nextQueued(lane: LaneId): LetterRow | undefined {
    const queued = this.ofLane(lane).filter((letter) => letter.state === 'queued')
    return queued.toSorted((one, other) => one.order - other.order)[0]
  }

  expirable(moment: Millis, n: number): readonly LetterRow[] {
    const old = (letter: LetterRow): boolean => letter.at <= moment && letter.state === 'dead' && !letter.blocks
    return [...this.all.values()].filter(old).slice(0, n)
  }
}

export class MemoryMarks implements MarkTable {
  readonly all: Map<number, MarkRow> = new Map()

  get(id: number): MarkRow | undefined {
    return this.all.get(id)
  }

  put(mark: MarkRow): void {
    this.all.set(mark.id, mark)
  }

  remove(id: number): void {
    this.all.delete(id)
  }

  due(...[now, reasons, flows, n]: Parameters<MarkTable['due']>): readonly MarkRow[] {
    return [...this.all.values()]
      .filter(
        (mark) => mark.due <= now && reasons.includes(mark.reason) && (mark.flow === '' || flows.includes(mark.flow)),
      )
      .toSorted((one, other) => one.due - other.due || one.id - other.id)
      .slice(0, n)
  }

  ofEvent(event: number): readonly MarkRow[] {
    return [...this.all.values()].filter((mark) => mark.event === event)
  }
}
