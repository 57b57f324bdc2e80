// Lanes as rows. What every lane has is a column; what few have is one JSON cell, absent in the rest.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { begin } from '../../model/claim.ts'
import { emptyLane, type Lane, type Line } from '../../model/lane.ts'
import { keptUntil, leaseEnd, readRest, restOf } from '../rules/lane-rest.ts'
import type { LanesRead } from '../rules/store.ts'
import type { GroupQuery, LaneTable, ReadyQuery } from '../rules/tables.ts'
import { BegunRuns } from './begun-runs.ts'
import { GroupTurns, type Standing } from './group-turns.ts'
import { LanesInMemory } from './lanes-in-memory.ts'
import type { SqlitePlaces } from './places.ts'
import { PushedBack } from './pushed-back.ts'
import { moment, number, orNull, text, type Row, type Statements } from './statements.ts'

const COLUMNS = 'row, id, flow, key, tenant, grp, tail, waiting, bytes, win, cap, due, ticket, line, rest, here'
const GET = `select ${COLUMNS} from lanes where id = ?`
const GET_ROW = `select ${COLUMNS} from lanes where row = ?`
const INSERT = `insert into lanes (${COLUMNS}, lease, keep_until) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const UPDATE = `update lanes set tail = ?, waiting = ?, bytes = ?, win = ?, cap = ?, due = ?, ticket = ?, line = ?, rest = ?,
  here = ?, lease = ?, keep_until = ? where row = ?`
const MANY_ROWS = `select ${COLUMNS} from lanes where row in (select value from json_each(?))`
// Of the index alone: most lanes that get their turn again and again are at hand.
const READY = `select row from lanes indexed by lanes_line where flow = ? and line = ? and due <= ?
  order by due, ticket limit ? offset ?`
const FIRST_IN_GROUP = `select ${COLUMNS} from lanes indexed by lanes_share
  where flow = ? and grp = ? and grp <> '' and line = ? and due <= ? order by due, ticket limit 1`
// The index of shares does not have them: they are looked for in the line of all, from where the first of them may be.
const FIRST_OF_NO_GROUP = `select ${COLUMNS} from lanes indexed by lanes_line
  where flow = ? and line = ? and due >= ? and due <= ? and grp = '' order by due, ticket limit 1`
const OF_GROUP = `select 1 from lanes indexed by lanes_share where flow = ? and grp = ? and grp <> '' and due is not null limit 1`
const OF_NO_GROUP = `select 1 from lanes indexed by lanes_line where flow = ? and due is not null and grp = '' limit 1`
const HEAD = `select due, id from lanes where flow = ? and line = ? and due is not null order by due, ticket limit 1 offset ?`
const EARLIER = `select due, id from lanes where flow = ? and line = ? and due < ? order by due, ticket limit ?`
const LIVE = `select count(*) from lanes indexed by lanes_live where flow = ? and grp = ? and lease is not null and lease > ?`
const STALE = `select ${COLUMNS} from lanes where keep_until <= ? limit ?`
const CROWDED = `select tenant, count(*) from lanes where flow = ? and tenant <> '' and waiting > 0 and lease is null
  group by tenant having count(*) > ?`
const OLDEST = `select ${COLUMNS} from lanes where flow = ? and tenant = ? and tenant <> '' and waiting > 0 order by row limit ?`

/** Lanes kept in memory between commits. */
const CACHED = 4_096

export class SqliteLanes implements LaneTable {
  readonly #sql: Statements
  readonly #places: SqlitePlaces
  readonly #begun: BegunRuns
  readonly #pushedBack: PushedBack
  readonly #turns: GroupTurns
  readonly #cache = new LanesInMemory()
  /** Lanes that this commit has made. */
  readonly #fresh = new Set<LaneId>()
  /** By flow, the deadline up to which the lanes that have begun are the first of their line. */
  readonly #begunUpTo = new Map<string, Millis>()

  /** Who only reads has no memory of its own: what was put off is known to the process that works on the file. */
  constructor(sql: Statements, places: SqlitePlaces, readOnly: boolean) {
    this.#sql = sql
    this.#places = places
    this.#begun = new BegunRuns(sql)
    this.#pushedBack = new PushedBack(sql, places)
    this.#turns = new GroupTurns(sql, {
      first: (place, from) => this.#firstOfGroup(place, from),
      live: (flow, group, now) => this.#live(flow, group, now),
      waits: (flow, group) =>
        (group === '' ? this.#sql.get(OF_NO_GROUP, flow) : this.#sql.get(OF_GROUP, flow, group)) !== undefined,
    })
    if (!readOnly) this.#recover()
  }

  get(id: LaneId): Lane | undefined {
    const cached = this.#cache.get(id)
    if (cached !== undefined) return cached
    const row = this.#sql.get(GET, id)
    return row === undefined ? undefined : this.#atHand(row)
  }

  put(lane: Lane): void {
    this.#begun.ended(lane.row)
    const before = this.#cache.get(lane.id)
    const mayOnlyWait = before !== undefined && before.run === undefined && lane.run === undefined
    const onlyWaits = mayOnlyWait && restOf(before) === null && restOf(lane) === null
    if (onlyWaits && this.#pushedBack.takes(before, lane)) this.#cache.set(lane)
    else this.#write(lane)
  }

  #write(lane: Lane): void {
    this.#pushedBack.ended(lane.id)
    if (lane.due <= (this.#begunUpTo.get(lane.flow) ?? 0)) this.#begunUpTo.delete(lane.flow)
    const changing = [
      lane.tail,
      lane.waiting,
      lane.bytes,
      orNull(lane.window),
      orNull(lane.cap),
      orNull(lane.due),
      lane.ticket,
      lane.line,
      restOf(lane),
      this.#places.written(lane.row),
      orNull(leaseEnd(lane)),
      orNull(keptUntil(lane)),
    ]
    if (this.#cache.has(lane.id)) this.#sql.set(UPDATE, ...changing, lane.row)
    else {
      this.#sql.run(INSERT, lane.row, lane.id, lane.flow, lane.key, lane.tenant, lane.group, ...changing)
      this.#fresh.add(lane.id)
    }
    this.#cache.set(lane)
    this.#turns.written(lane)
  }

  begun(before: Lane, lane: Lane): void {
    if (restOf(before) !== null || before.group !== '') return this.put(lane)
    this.#cache.set(lane)
    this.#begun.add(before, lane)
    if (this.#begunUpTo.has(lane.flow))
      this.#begunUpTo.set(lane.flow, Math.max(before.due, this.#begunUpTo.get(lane.flow) ?? 0))
    return undefined
  }

  /** What the next commit must know of lanes that were not written. */
  finish(): void {
    this.#begun.write()
    for (const lane of this.#pushedBack.overdue()) this.#write(lane)
    this.#pushedBack.write()
  }

  /** Writes every lane whose row does not say how it is. */
  catchUp(looked: LanesRead = 'all'): void {
    this.#catchUpBegun(undefined)
    if (looked === 'all') for (const lane of this.#pushedBack.all()) this.#write(lane)
  }

  /** Writes lanes of runs that have begun and not ended: the index has to be true before it is read. */
  #catchUpBegun(flow: string | undefined): void {
    this.#writeBegun(this.#begun.take(flow))
  }

  #writeBegun(ids: readonly LaneId[]): void {
    for (const id of ids) {
      const lane = this.#cache.get(id)
      if (lane !== undefined) this.#write(lane)
    }
  }

  isBehind(looked: LanesRead): boolean {
    if (looked === 'none') return false
    return this.#begun.count > 0 || (looked === 'all' && this.#pushedBack.count > 0)
  }

  remove(lane: Lane): void {
    this.#begun.ended(lane.row)
    this.#pushedBack.ended(lane.id)
    if (this.#cache.delete(lane)) this.#sql.behind('delete from lanes where row', [lane.row])
    this.#places.gone(lane.row)
  }

  /** Lanes that changed in a commit stay at hand until it ends, however many: their places are not yet all written. */
  letGo(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      this.#cache.clear()
      this.#places.letGo()
      this.#turns.letGo()
      this.#recover()
    }
    // Most new lanes are not looked at again before their turn: those that are will come back and stay.
    for (const id of this.#fresh) this.#drop(id)
    this.#fresh.clear()
    for (const id of this.#cache.ids()) {
      if (this.#cache.size <= CACHED) break
      this.#drop(id)
    }
  }

  #drop(id: LaneId): void {
    const lane = this.#cache.get(id)
    if (lane === undefined || this.#begun.has(lane.row) || this.#pushedBack.has(id)) return
    this.#cache.delete(lane)
    this.#places.gone(lane.row)
  }

  ready({ flow, line, now, n }: ReadyQuery): readonly Lane[] {
    if (this.#begunUpTo.has(flow)) this.#writeBegun(this.#begun.takeOld(flow, now))
    if (!this.#begunUpTo.has(flow)) this.#standAnew(flow)
    return this.#standing(() => this.#at(this.#sql.all(READY, flow, line, now, n, this.#begun.inLine(flow, line))))
  }

  /** Nothing that has begun stands in the line any more. */
  #standAnew(flow: string): void {
    this.#catchUpBegun(flow)
    this.#begunUpTo.set(flow, 0)
  }

  inTurn(query: GroupQuery): readonly Lane[] {
    return this.#turns.next(query)
  }

  tookTurn(lane: Lane, turn: number, now: Millis): void {
    this.#turns.served(lane, turn, now)
  }

  forgetTurns(before: Millis, now: Millis, n: number): number {
    return this.#turns.forgetServed(before, now, n)
  }

  #firstOfGroup(
    { flow, line, now }: Pick<ReadyQuery, 'flow' | 'line' | 'now'>,
    { group, due }: Standing,
  ): Lane | undefined {
    this.#standAnew(flow)
    return this.#standing(() => {
      const rows =
        group === ''
          ? this.#sql.all(FIRST_OF_NO_GROUP, flow, line, due, now)
          : this.#sql.all(FIRST_IN_GROUP, flow, group, line, now)
      return rows.map((row) => this.#atHand(row))
    })[0]
  }

  /** Lanes that the index has, when all of them stand where they belong. */
  #standing(found: () => readonly Lane[]): readonly Lane[] {
    for (;;) {
      const lanes = found()
      const rang = lanes.filter(({ id }) => this.#rangEarly(id))
      if (rang.length === 0) return lanes
    }
  }

  /** The lanes of these rows, in their order. Those that are not at hand are read in one go. */
  #at(rows: readonly Row[]): readonly Lane[] {
    const found = rows.map(([row]) => number(row))
    const unread = found.filter((row) => this.#cache.at(row) === undefined)
    if (unread.length > 0) for (const row of this.#sql.all(MANY_ROWS, JSON.stringify(unread))) this.#atHand(row)
    return found.flatMap((row) => this.#cache.at(row) ?? [])
  }

  /** The index has this lane too early. It now has it where it belongs, and is to be asked again. */
  #rangEarly(id: LaneId): boolean {
    const lane = this.#pushedBack.has(id) ? this.#cache.get(id) : undefined
    if (lane !== undefined) this.#write(lane)
    return lane !== undefined
  }

  head(flow: string, lines: readonly Line[]): Millis | undefined {
    const standing = lines.map((line) => this.#headOf(flow, line))
    const due = Math.min(...standing, this.#begun.firstEnd(flow))
    return due === NEVER ? undefined : due
  }

  /** Asked at the end of a turn: lanes that have just begun are the first of their line, and still stand there. */
  #headOf(flow: string, line: Line): Millis {
    if (!this.#begunUpTo.has(flow)) this.#catchUpBegun(flow)
    for (;;) {
      const head = this.#sql.get(HEAD, flow, line, this.#begun.inLine(flow, line))
      if (head === undefined || !this.#rangEarly(text(head[1]))) return moment(head?.[0])
    }
  }

  /** The first deadline of a flow, NEVER for none, while lanes that were pushed back stay where the index has them. */
  firstDue(flow: string, lines: readonly Line[]): Millis {
    const pushed = this.#pushedBack.firstDue(flow)
    const standing = lines.map((line) => {
      const rows = this.#sql.all(EARLIER, flow, line, pushed, this.#pushedBack.count + 1)
      return moment(rows.find(([, id]) => !this.#pushedBack.has(text(id)))?.[0] ?? null)
    })
    return Math.min(pushed, ...standing)
  }

  #live(flow: string, group: string, now: Millis): number {
    this.#catchUpBegun(flow)
    return number(this.#sql.get(LIVE, flow, group, now)?.[0])
  }

  stale(now: Millis, n: number): readonly Lane[] {
    this.catchUp()
    return this.#sql.all(STALE, now, n).map((row) => this.#atHand(row))
  }

  beyond(flow: string, most: number, now: Millis): readonly Lane[] {
    this.#catchUpBegun(flow)
    return this.#sql.all(CROWDED, flow, most).flatMap(([tenant, count]) =>
      this.#sql
        .all(OLDEST, flow, text(tenant), number(count) - most)
        .map((row) => this.#atHand(row))
        .filter((lane) => lane.run === undefined && lane.window > now),
    )
  }

  /** The file has lanes as they were before: what it lists beside them brings them back to where they are. */
  #recover(): void {
    const rowOf = (row: number): Lane | undefined => {
      const found = this.#sql.get(GET_ROW, row)
      return found === undefined ? undefined : this.#atHand(found)
    }
    for (const lane of this.#pushedBack.read(rowOf)) this.#cache.set(lane)
    for (const { begun, turn } of this.#begun.read()) {
      const lane = this.get(begun.lane)
      if (lane === undefined || lane.ticket !== begun.ticket) continue
      const rows = this.#places.upto(lane, 0, begun.upto)
      const again = begin(lane, begun.run, { rank: 0, rows, superseded: [] }, turn)
      this.#cache.set(again)
      this.#begun.add(lane, again)
    }
    this.#begun.isNew = false
    this.#begunUpTo.clear()
  }

  /** A lane that was read is at hand with its places, until it is let go. */
  #atHand(row: Row): Lane {
    const id = text(row[1])
    const cached = this.#cache.get(id)
    if (cached !== undefined) return cached
    const lane = laneOf(row)
    this.#places.read(lane.row, text(row[15]))
    this.#cache.set(lane)
    return lane
  }
}

export function laneOf(row: Row): Lane {
  const name = { id: text(row[1]), flow: text(row[2]), key: text(row[3]), tenant: text(row[4]), group: text(row[5]) }
  const rest = row[14]
  return Object.assign(
    emptyLane(name),
    {
      row: number(row[0]),
      tail: number(row[6]),
      waiting: number(row[7]),
      bytes: number(row[8]),
      window: moment(row[9]),
      cap: moment(row[10]),
      due: moment(row[11]),
      ticket: number(row[12]),
      line: number(row[13]) as Line,
    },
    typeof rest === 'string' ? readRest(rest) : undefined,
  )
}

export const LANE_COLUMNS: string = COLUMNS
