// `SqliteLanes` stores lanes as rows. Fields that every lane has are columns; rare fields share one JSON cell, which is
// NULL in most rows.
import { NEVER, type Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import { beginRun } from '../../model/claim.ts'
import { createLane, type Lane, type LaneHealth } from '../../model/lane.ts'
import { getKeepUntil, getLeaseEnd, parseRareFields, serializeRareFields } from '../sql/lane-columns.ts'
import type { LaneReadScope } from '../core/store.ts'
import type { GroupQuery, LaneTable, ReadyQuery } from '../core/tables.ts'
import { NewRuns } from './new-runs.ts'
import { SqliteGroupOrder, type GroupPosition } from './group-order.ts'
import { LaneCache } from './lane-cache.ts'
import type { SqlitePlacements } from './placements.ts'
import { DeferredLaneWrites } from './deferred-lane-writes.ts'
import { millisOrNever, number, millisOrNull, text, type Row, type Statements } from './statements.ts'

const COLUMNS = 'row, id, flow, key, tenant, grp, tail, waiting, bytes, win, cap, due, ticket, line, rest, here'
const GET = `select ${COLUMNS} from lanes where id = ?`
const GET_ROW = `select ${COLUMNS} from lanes where row = ?`
const INSERT = `insert into lanes (${COLUMNS}, lease, keep_until) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const UPDATE = `update lanes set tail = ?, waiting = ?, bytes = ?, win = ?, cap = ?, due = ?, ticket = ?, line = ?, rest = ?,
  here = ?, lease = ?, keep_until = ? where row = ?`
const MANY_ROWS = `select ${COLUMNS} from lanes where row in (select value from json_each(?))`
// Reads the index only: most lanes that become ready again and again are in the cache.
const READY = `select row from lanes indexed by lanes_line where flow = ? and line = ? and due <= ?
  order by due, ticket limit ? offset ?`
const FIRST_IN_GROUP = `select ${COLUMNS} from lanes indexed by lanes_share
  where flow = ? and grp = ? and grp <> '' and line = ? and due <= ? order by due, ticket limit 1`
// The index `lanes_share` leaves out lanes without a group. The query scans the index of the flow from where the first
// such lane may be.
const FIRST_OF_NO_GROUP = `select ${COLUMNS} from lanes indexed by lanes_line
  where flow = ? and line = ? and due >= ? and due <= ? and grp = '' order by due, ticket limit 1`
const OF_GROUP = `select 1 from lanes indexed by lanes_share where flow = ? and grp = ? and grp <> '' and due is not null limit 1`
const OF_NO_GROUP = `select 1 from lanes indexed by lanes_line where flow = ? and due is not null and grp = '' limit 1`
const HEAD = `select due, id from lanes where flow = ? and line = ? and due is not null order by due, ticket limit 1 offset ?`
const EARLIER = `select due, id from lanes where flow = ? and line = ? and due < ? order by due, ticket limit ?`
const LIVE = `select count(*) from lanes indexed by lanes_live where flow = ? and grp = ? and lease is not null and lease > ?`
const STALE = `select ${COLUMNS} from lanes where keep_until <= ? limit ?`
/** No run is in progress or waiting for a retry. Quotes inside a JSON string would be escaped, so the pattern cannot
    match one. */
const HAS_NO_RUN = `(rest is null or instr(rest, '"run":{') = 0)`
const CROWDED = `select tenant, count(*) from lanes where flow = ? and tenant <> '' and waiting > 0 and ${HAS_NO_RUN}
  group by tenant having count(*) > ?`
const OLDEST = `select ${COLUMNS} from lanes where flow = ? and tenant = ? and tenant <> '' and waiting > 0 and ${HAS_NO_RUN}
  order by row limit ?`

/** The number of lanes kept in memory between commits. */
const MAX_CACHED_LANES = 4_096

export class SqliteLanes implements LaneTable {
  readonly #sql: Statements
  readonly #placements: SqlitePlacements
  readonly #newRuns: NewRuns
  readonly #deferred: DeferredLaneWrites
  readonly #groupOrder: SqliteGroupOrder
  readonly #cache = new LaneCache()
  /** The lanes that this commit created. */
  readonly #createdInCommit = new Set<LaneId>()
  /** Per flow, the deadline up to which all index entries belong to lanes with a new run, i.e. they are the first of
      their queue. */
  readonly #newRunsUpTo = new Map<string, Millis>()

  /** A read-only store recovers nothing: only the process that works on the file knows its deferred changes. */
  constructor(sql: Statements, placements: SqlitePlacements, readOnly: boolean) {
    this.#sql = sql
    this.#placements = placements
    this.#newRuns = new NewRuns(sql)
    this.#deferred = new DeferredLaneWrites(sql, placements)
    this.#groupOrder = new SqliteGroupOrder(sql, {
      findFirst: (placement, from) => this.#findFirstOfGroup(placement, from),
      countLive: (flow, group, now) => this.#countLive(flow, group, now),
      hasWaiting: (flow, group) =>
        (group === '' ? this.#sql.get(OF_NO_GROUP, flow) : this.#sql.get(OF_GROUP, flow, group)) !== undefined,
    })
    if (!readOnly) this.#recover()
  }

  get(id: LaneId): Lane | undefined {
    const cached = this.#cache.get(id)
    if (cached !== undefined) return cached
    const row = this.#sql.get(GET, id)
    return row === undefined ? undefined : this.#cacheLane(row)
  }

  put(lane: Lane): void {
    this.#newRuns.remove(lane.row)
    const before = this.#cache.get(lane.id)
    const mayOnlyWait = before !== undefined && before.run === undefined && lane.run === undefined
    const onlyWaits = mayOnlyWait && serializeRareFields(before) === null && serializeRareFields(lane) === null
    if (onlyWaits && this.#deferred.tryDefer(before, lane)) this.#cache.set(lane)
    else this.#write(lane)
  }

  #write(lane: Lane): void {
    this.#deferred.remove(lane.id)
    if (lane.due <= (this.#newRunsUpTo.get(lane.flow) ?? 0)) this.#newRunsUpTo.delete(lane.flow)
    const changing = [
      lane.tail,
      lane.waiting,
      lane.bytes,
      millisOrNull(lane.window),
      millisOrNull(lane.cap),
      millisOrNull(lane.due),
      lane.ticket,
      lane.health,
      serializeRareFields(lane),
      this.#placements.serializeRow(lane.row),
      millisOrNull(getLeaseEnd(lane)),
      millisOrNull(getKeepUntil(lane)),
    ]
    if (this.#cache.has(lane.id)) this.#sql.runUnordered(UPDATE, ...changing, lane.row)
    else {
      this.#sql.run(INSERT, lane.row, lane.id, lane.flow, lane.key, lane.tenant, lane.group, ...changing)
      this.#createdInCommit.add(lane.id)
    }
    this.#cache.set(lane)
    this.#groupOrder.onLaneWritten(lane)
  }

  putWithNewRun(before: Lane, lane: Lane): void {
    if (serializeRareFields(before) !== null || before.group !== '') return this.put(lane)
    this.#cache.set(lane)
    this.#newRuns.add(before, lane)
    if (this.#newRunsUpTo.has(lane.flow))
      this.#newRunsUpTo.set(lane.flow, Math.max(before.due, this.#newRunsUpTo.get(lane.flow) ?? 0))
    return undefined
  }

  /** `beforeCommit` adds to the commit the lists of lanes whose rows it does not write. */
  beforeCommit(): void {
    this.#newRuns.write()
    for (const lane of this.#deferred.findOverdue()) this.#write(lane)
    this.#deferred.write()
  }

  /** `flush` writes every lane whose row is out of date. */
  flush(scope: LaneReadScope = 'all'): void {
    this.#flushNewRuns(undefined)
    if (scope === 'all') for (const lane of this.#deferred.all()) this.#write(lane)
  }

  /** `#flushNewRuns` writes the lanes of listed runs: the index must be correct before it is read. */
  #flushNewRuns(flow: string | undefined): void {
    this.#writeLanes(this.#newRuns.take(flow))
  }

  #writeLanes(ids: readonly LaneId[]): void {
    for (const id of ids) {
      const lane = this.#cache.get(id)
      if (lane !== undefined) this.#write(lane)
    }
  }

  hasDeferred(scope: LaneReadScope): boolean {
    if (scope === 'none') return false
    return this.#newRuns.count > 0 || (scope === 'all' && this.#deferred.count > 0)
  }

  remove(lane: Lane): void {
    this.#newRuns.remove(lane.row)
    this.#deferred.remove(lane.id)
    if (this.#cache.delete(lane)) this.#sql.runBatched('delete from lanes where row', [lane.row])
    this.#placements.forget(lane.row)
  }

  /** Lanes that changed in a commit stay in memory until it ends, however many, because their placements may not be
      written yet. */
  afterTransaction(how: 'committed' | 'rolled-back'): void {
    if (how === 'rolled-back') {
      this.#cache.clear()
      this.#placements.clear()
      this.#groupOrder.clear()
      this.#recover()
    }
    // Most new lanes are not read again before their deadline. The others return to the cache and stay.
    for (const id of this.#createdInCommit) this.#evict(id)
    this.#createdInCommit.clear()
    for (const id of this.#cache.ids()) {
      if (this.#cache.size <= MAX_CACHED_LANES) break
      this.#evict(id)
    }
  }

  #evict(id: LaneId): void {
    const lane = this.#cache.get(id)
    if (lane === undefined || this.#newRuns.has(lane.row) || this.#deferred.has(id)) return
    this.#cache.delete(lane)
    this.#placements.forget(lane.row)
  }

  findReady({ flow, health, now, n }: ReadyQuery): readonly Lane[] {
    if (this.#newRunsUpTo.has(flow)) this.#writeLanes(this.#newRuns.takeOld(flow, now))
    if (!this.#newRunsUpTo.has(flow)) this.#takeNewRunsOutOfQueue(flow)
    return this.#readUntilCurrent(() =>
      this.#getByRows(this.#sql.all(READY, flow, health, now, n, this.#newRuns.countInQueue(flow, health))),
    )
  }

  /** `#takeNewRunsOutOfQueue` writes all lanes with a new run, so that none of them is in the index as ready. */
  #takeNewRunsOutOfQueue(flow: string): void {
    this.#flushNewRuns(flow)
    this.#newRunsUpTo.set(flow, 0)
  }

  findGroupHeads(query: GroupQuery): readonly Lane[] {
    return this.#groupOrder.findNext(query)
  }

  recordGroupServed(lane: Lane, turn: number, now: Millis): void {
    this.#groupOrder.recordServed(lane, turn, now)
  }

  forgetGroupTurns(before: Millis, now: Millis, n: number): number {
    return this.#groupOrder.forgetServed(before, now, n)
  }

  #findFirstOfGroup(
    { flow, health, now }: Pick<ReadyQuery, 'flow' | 'health' | 'now'>,
    { group, due }: GroupPosition,
  ): Lane | undefined {
    this.#takeNewRunsOutOfQueue(flow)
    return this.#readUntilCurrent(() => {
      const rows =
        group === ''
          ? this.#sql.all(FIRST_OF_NO_GROUP, flow, health, due, now)
          : this.#sql.all(FIRST_IN_GROUP, flow, group, health, now)
      return rows.map((row) => this.#cacheLane(row))
    })[0]
  }

  /** `#readUntilCurrent` repeats a read until all lanes found have their correct position in the index. */
  #readUntilCurrent(found: () => readonly Lane[]): readonly Lane[] {
    for (;;) {
      const lanes = found()
      const early = lanes.filter(({ id }) => this.#fixEarlyPosition(id))
      if (early.length === 0) return lanes
    }
  }

  /** `#getByRows` returns the lanes of the given rows in the same order. One query reads the lanes missing from the cache. */
  #getByRows(rows: readonly Row[]): readonly Lane[] {
    const found = rows.map(([row]) => number(row))
    const unread = found.filter((row) => this.#cache.getByRow(row) === undefined)
    if (unread.length > 0) for (const row of this.#sql.all(MANY_ROWS, JSON.stringify(unread))) this.#cacheLane(row)
    return found.flatMap((row) => this.#cache.getByRow(row) ?? [])
  }

  /** `#fixEarlyPosition` writes a lane that the index has too early. It returns whether the index must be read
      again. */
  #fixEarlyPosition(id: LaneId): boolean {
    const lane = this.#deferred.has(id) ? this.#cache.get(id) : undefined
    if (lane !== undefined) this.#write(lane)
    return lane !== undefined
  }

  findNextDeadline(flow: string, healths: readonly LaneHealth[]): Millis | undefined {
    const deadlines = healths.map((health) => this.#findHead(flow, health))
    const due = Math.min(...deadlines, this.#newRuns.findFirstLeaseEnd(flow))
    return due === NEVER ? undefined : due
  }

  /** Called at the end of a claim: lanes that have just begun a run are the first of their queue, and still in the
      index. */
  #findHead(flow: string, health: LaneHealth): Millis {
    if (!this.#newRunsUpTo.has(flow)) this.#flushNewRuns(flow)
    for (;;) {
      const head = this.#sql.get(HEAD, flow, health, this.#newRuns.countInQueue(flow, health))
      if (head === undefined || !this.#fixEarlyPosition(text(head[1]))) return millisOrNever(head?.[0])
    }
  }

  /** `findFirstDue` returns the first deadline of a flow, or NEVER. It leaves deferred lanes where the index has
      them. */
  findFirstDue(flow: string, healths: readonly LaneHealth[]): Millis {
    const pushed = this.#deferred.findFirstDue(flow)
    const deadlines = healths.map((health) => {
      const rows = this.#sql.all(EARLIER, flow, health, pushed, this.#deferred.count + 1)
      return millisOrNever(rows.find(([, id]) => !this.#deferred.has(text(id)))?.[0] ?? null)
    })
    return Math.min(pushed, ...deadlines)
  }

  #countLive(flow: string, group: string, now: Millis): number {
    this.#flushNewRuns(flow)
    return number(this.#sql.get(LIVE, flow, group, now)?.[0])
  }

  findStale(now: Millis, n: number): readonly Lane[] {
    this.flush()
    return this.#sql.all(STALE, now, n).map((row) => this.#cacheLane(row))
  }

  findOverTenantLimit(flow: string, most: number, now: Millis): readonly Lane[] {
    this.#flushNewRuns(flow)
    return this.#sql.all(CROWDED, flow, most).flatMap(([tenant, count]) =>
      this.#sql
        .all(OLDEST, flow, text(tenant), number(count) - most)
        .map((row) => this.#cacheLane(row))
        .filter((lane) => lane.run === undefined && lane.window > now),
    )
  }

  /** `#recover` applies the lists in the file to the lanes, whose rows may be older. */
  #recover(): void {
    const rowOf = (row: number): Lane | undefined => {
      const found = this.#sql.get(GET_ROW, row)
      return found === undefined ? undefined : this.#cacheLane(found)
    }
    for (const lane of this.#deferred.recover(rowOf)) this.#cache.set(lane)
    for (const { begun, turn } of this.#newRuns.recover()) {
      const lane = this.get(begun.lane)
      if (lane === undefined || lane.ticket !== begun.ticket) continue
      const rows = this.#placements.findUpTo(lane, 0, begun.upto)
      const again = beginRun(lane, begun.run, { rank: 0, replay: '', rows, superseded: [] }, turn)
      this.#cache.set(again)
      this.#newRuns.add(lane, again)
    }
    this.#newRuns.isDirty = false
    this.#newRunsUpTo.clear()
  }

  /** `#cacheLane` keeps a lane that was read, with its placements, until it is evicted. */
  #cacheLane(row: Row): Lane {
    const id = text(row[1])
    const cached = this.#cache.get(id)
    if (cached !== undefined) return cached
    const lane = toLane(row)
    this.#placements.loadRow(lane.row, text(row[15]))
    this.#cache.set(lane)
    return lane
  }
}

export function toLane(row: Row): Lane {
  const name = { id: text(row[1]), flow: text(row[2]), key: text(row[3]), tenant: text(row[4]), group: text(row[5]) }
  const rest = row[14]
  return Object.assign(
    createLane(name),
    {
      row: number(row[0]),
      tail: number(row[6]),
      waiting: number(row[7]),
      bytes: number(row[8]),
      window: millisOrNever(row[9]),
      cap: millisOrNever(row[10]),
      due: millisOrNever(row[11]),
      ticket: number(row[12]),
      health: number(row[13]) as LaneHealth,
    } satisfies Partial<Lane>,
    typeof rest === 'string' ? parseRareFields(rest) : undefined,
  )
}

export const LANE_COLUMNS: string = COLUMNS
