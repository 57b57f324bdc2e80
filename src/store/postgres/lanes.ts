// `PostgresLanes` holds the lanes of a transaction. It locks lanes in the order of their ids; a claim never waits for a lane.
import { NEVER, type Millis } from '../../clock.ts'
import { isEmptyLane, type Lane, type LaneHealth } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { LaneTable, WaitingPlacement, ReadyQuery } from '../core/tables.ts'
import { PostgresGroupOrder } from './group-order.ts'
import { toPositionedLane, POSITIONED_LANE_COLUMNS } from './lane-rows.ts'
import { buildLaneWrites } from './lane-writes.ts'
import type { ScanStarts } from './scan-start.ts'
import type { AdvisoryLocks } from './locks.ts'
import {
  buildDelete,
  each,
  RowCache,
  QueryCache,
  type Db,
  type TransactionCache,
  type TransactionTable,
  type Statement,
} from './row-cache.ts'
import { queryFronts, queryNextDeadlines, queryReadyLanes, type ReadyScan, type QueueKey } from './ready-queries.ts'
import { compareByDeadline, ReadyLanes, UNKNOWN_NOW, type KnownExtent } from './ready-lanes.ts'
import { IndexPositions, type IndexPosition } from './index-position.ts'
import { number, escapeText, type Row } from './values.ts'

const BY_ID = `select ${POSITIONED_LANE_COLUMNS} from lanes where id = any($1) order by id`
const LOCKED = `${BY_ID} for update`
const NOWAIT = `${BY_ID} for update nowait`
/**
 * Most locks are held for some milliseconds. If two transactions wait for each other, this one gives up and then locks in
 * order.
 */
const SHORT_LOCK_TIMEOUT = 'set local lock_timeout = 100'
const RESET_LOCK_TIMEOUT = 'set local lock_timeout = default'
const STALE = `select ${POSITIONED_LANE_COLUMNS} from lanes where keep_until <= $1 limit $2 for update skip locked`
/**
 * The lane has no run, neither running nor waiting for its next attempt. A text value cannot contain this pattern, because its
 * quotes would be escaped.
 */
const HAS_NO_RUN = `(token is null and (rest is null or position('"run":{' in rest) = 0))`
const CROWDED = `select tenant, count(*) from lanes where flow = $1 and tenant <> '' and waiting > 0 and ${HAS_NO_RUN}
  group by tenant having count(*) > $2`
const OLDEST = `select ${POSITIONED_LANE_COLUMNS} from lanes where flow = $1 and tenant = $2 and waiting > 0 and ${HAS_NO_RUN}
  order by row limit $3 for update skip locked`

type DeadlineQuery = [flow: string, health: LaneHealth]

interface PostgresLanesDependencies {
  readonly name: string
  /** Undefined until the server has returned the time. */
  readonly now: Millis | undefined
  /** Lanes to lock together with the first ones that the rules read. */
  readonly lockFirst: readonly LaneId[]
  readonly scanStarts: ScanStarts
  /** Returns the placement to keep in the lane's row. */
  readonly getInlinePlacement: (lane: Lane) => WaitingPlacement | undefined
  readonly locks: AdvisoryLocks
}

export class PostgresLanes implements LaneTable, TransactionTable {
  readonly #lanes = new RowCache<Lane>()
  readonly #positions = new IndexPositions()
  readonly #ready = new ReadyLanes()
  readonly #deadlines = new QueryCache<DeadlineQuery, Millis>((db, queries) => this.#findDeadlines(db, queries))
  readonly #stale = new QueryCache(
    each(async (db, now: Millis, n: number) => this.#load(await db.query(STALE, [now, n]))),
  )
  readonly #overTenantLimit = new QueryCache(
    each(async (db, flow: string, most: number) => {
      const crowded = await db.query(CROWDED, [escapeText(flow), most])
      const found = crowded.map(([tenant, count]) => db.query(OLDEST, [escapeText(flow), tenant, number(count) - most]))
      return (await Promise.all(found)).flatMap((rows) => this.#load(rows))
    }),
  )
  readonly #groupOrder: PostgresGroupOrder
  #isLocking = false
  #now: Millis | undefined

  /** All lanes that this transaction has tried to lock. */
  lockedIds: readonly LaneId[] = []
  #lockFirst: readonly LaneId[]
  /** Whether this is a retry because others held lanes that the transaction needed. */
  readonly #isRetry: boolean
  readonly #dependencies: PostgresLanesDependencies

  constructor(dependencies: PostgresLanesDependencies) {
    this.#dependencies = dependencies
    this.#now = dependencies.now
    this.#lockFirst = dependencies.lockFirst
    this.#isRetry = dependencies.lockFirst.length > 0
    const transactionLanes = {
      all: () => this.#lanes.values(),
      has: (id: LaneId) => this.#lanes.stored(id) !== undefined,
      storedIds: () => this.#lanes.storedKeys,
      load: (rows: readonly Row[]) => this.#loadFound(rows),
    }
    this.#groupOrder = new PostgresGroupOrder(transactionLanes, dependencies.locks)
  }

  /** `getPosition` returns the lane's stored position, if the server has the same lane row. */
  getPosition(lane: Lane): IndexPosition | undefined {
    const position = this.#positions.get(lane.id)
    return position?.lane.row === lane.row ? position : undefined
  }

  get(id: LaneId): Lane | undefined {
    return this.#lanes.get(id)
  }

  put(lane: Lane): void {
    this.#lanes.put(lane.id, lane)
  }

  putWithNewRun(_before: Lane, lane: Lane): void {
    this.put(lane)
  }

  remove(lane: Lane): void {
    this.#lanes.remove(lane.id)
  }

  findReady(query: ReadyQuery): readonly Lane[] {
    const { flow, health, now, n } = query
    const known = [...this.#lanes.values()].filter(
      (lane) => lane.flow === flow && lane.health === health && lane.due <= now,
    )
    const first = this.#ready.filterKnown(query, known.toSorted(compareByDeadline)).slice(0, n)
    if (first.length < n) this.#ready.request(query)
    return first
  }

  findGroupHeads(query: Parameters<LaneTable['findGroupHeads']>[0]): readonly Lane[] {
    return this.#groupOrder.findGroupHeads(query)
  }

  recordGroupServed(lane: Lane, turn: number, now: Millis): void {
    this.#groupOrder.recordGroupServed(lane, turn, now)
  }

  forgetGroupTurns(before: Millis, now: Millis, n: number): number {
    return this.#groupOrder.forgetGroupTurns(before, now, n)
  }

  /** The stored lanes are asked once the ready ones are loaded: those may move. Ready groups are only read at a known time. */
  findNextDeadline(flow: string, healths: readonly LaneHealth[]): Millis | undefined {
    if (this.#now === undefined || this.#ready.hasMisses || this.#groupOrder.hasMisses) return undefined
    const own = [...this.#lanes.values()].filter((lane) => lane.flow === flow && healths.includes(lane.health))
    const known = own.reduce((least, lane) => Math.min(least, lane.due), NEVER)
    const due = Math.min(known, ...healths.map((health) => this.#deadlines.get(flow, health) ?? NEVER))
    return due === NEVER ? undefined : due
  }

  findStale(now: Millis, n: number): readonly Lane[] {
    const ids = now === UNKNOWN_NOW ? [] : (this.#stale.get(now, n) ?? [])
    return this.#getAll(ids).filter((lane) => isEmptyLane(lane, now))
  }

  findOverTenantLimit(flow: string, most: number, now: Millis): readonly Lane[] {
    const ids = this.#overTenantLimit.get(flow, most) ?? []
    return this.#getAll(ids).filter((lane) => lane.run === undefined && lane.window > now)
  }

  #getAll(ids: readonly LaneId[]): readonly Lane[] {
    return ids.flatMap((id) => this.#lanes.get(id) ?? [])
  }

  resetPass(): void {
    this.#lanes.resetPass()
    for (const queries of this.#queries) queries.resetPass()
    this.#groupOrder.resetPass()
  }

  get hasMisses(): boolean {
    return this.#lanes.hasMisses || this.#queries.some((queries) => queries.hasMisses) || this.#groupOrder.hasMisses
  }

  get #queries(): readonly Pick<TransactionCache, 'resetPass' | 'hasMisses'>[] {
    return [this.#ready, this.#deadlines, this.#stale, this.#overTenantLimit]
  }

  /** `lock` locks the lanes that the rules read by id, before anything that belongs to them is read. */
  async lock(db: Db): Promise<void> {
    const ids = [...new Set([...this.#lanes.takeMisses(), ...this.#lockFirst])].toSorted()
    this.#lockFirst = []
    this.#isLocking = ids.length > 0
    if (ids.length === 0) return
    // A transaction that holds lanes and needs more is outside the common lock order, so it must not wait long.
    const held = this.#lanes.storedKeys
    this.lockedIds = [...held, ...ids]
    for (const id of ids) this.#lanes.setLoaded(id, undefined)
    if (db.readOnly) this.#load(await db.query(BY_ID, [ids]))
    else if (held.length === 0) this.#load(await db.query(LOCKED, [ids]))
    else if (!this.#isRetry) this.#load(await db.query(NOWAIT, [ids]))
    else {
      const [, rows] = await Promise.all([
        db.query(SHORT_LOCK_TIMEOUT),
        db.query(LOCKED, [ids]),
        db.query(RESET_LOCK_TIMEOUT),
      ])
      this.#load(rows)
    }
  }

  setNow(now: Millis): void {
    this.#now = now
    this.#ready.setNow(now)
  }

  /** `load` loads lanes that are found by their deadlines. `isAlone` is true if no other part of the transaction has misses. */
  async load(db: Db, isAlone: boolean = true): Promise<void> {
    await Promise.all([
      this.#deadlines.load(db),
      this.#ready.load((queries) => this.#findReady(db, queries)),
      // The live runs of a group can be counted once the lanes are loaded that this transaction may settle.
      this.#isLocking ? undefined : this.#groupOrder.load(db, isAlone),
      this.#stale.load(db),
      this.#overTenantLimit.load(db),
    ])
  }

  async #findReady(db: Db, queries: readonly ReadyQuery[]): Promise<readonly KnownExtent[]> {
    // If many lanes are too early in the index, the scan asks for more at once.
    const asked = this.#toReadyScans(queries, ({ n }) => n + 2 * this.#positions.earlyCount)
    const options = { without: this.#lanes.storedKeys, at: this.#now }
    const [found] = await Promise.all([queryReadyLanes(db, asked, options), this.#recordFronts(db, asked)])
    return asked.map(({ most }, n) => {
      const rings = this.#loadFound(found[n] ?? []).flatMap((id) => this.#positions.get(id)?.indexKey ?? [])
      // The rows have the order of the index, although one may have moved while the query waited for it.
      return { last: rings.at(-1), isAll: rings.length < most }
    })
  }

  async #findDeadlines(db: Db, queries: readonly DeadlineQuery[]): Promise<readonly Millis[]> {
    const asked = this.#toReadyScans(
      queries.map(([flow, health]) => ({ flow, health })),
      () => 0,
    )
    const options = { without: this.#lanes.loadedKeys, at: this.#now }
    const [deadlines] = await Promise.all([queryNextDeadlines(db, asked, options), this.#recordFronts(db, asked)])
    return deadlines
  }

  #toReadyScans<L extends QueueKey>(healths: readonly L[], most: (health: L) => number): readonly ReadyScan[] {
    return healths.map((one) => {
      const { flow, health } = one
      return { flow, health, from: this.#dependencies.scanStarts.getStart(flow, health), most: most(one) }
    })
  }

  async #recordFronts(db: Db, asked: readonly ReadyScan[]): Promise<void> {
    if (!this.#dependencies.scanStarts.isActive || asked.length === 0) return
    const fronts = await queryFronts(db, asked)
    for (const [n, { flow, health, from }] of asked.entries())
      this.#dependencies.scanStarts.recordFront(flow, health, from, fronts[n])
  }

  #load(rows: readonly Row[]): readonly LaneId[] {
    return rows.map((row) => {
      const lane = toPositionedLane(row, this.#dependencies.name)
      this.#lanes.setLoaded(lane.id, lane)
      this.#positions.load(lane, row)
      return lane.id
    })
  }

  /** `loadFound` loads lanes that a scan found by their position. */
  #loadFound(rows: readonly Row[]): readonly LaneId[] {
    const ids = this.#load(rows)
    for (const id of ids) this.#positions.markFound(id)
    return ids
  }

  buildWrites(): readonly Statement[] {
    const { changedRows: kept, removedKeys: removed } = this.#lanes
    this.#dependencies.scanStarts.lowerFor(kept)
    const writes = kept.map((lane) => {
      const inlinePlacement = this.#dependencies.getInlinePlacement(lane)
      return { lane, inlinePlacement, before: this.#positions.get(lane.id)?.lane }
    })
    return [
      ...buildDelete('lanes where id', removed),
      ...buildLaneWrites(writes),
      ...this.#positions.fixPositions((id) => this.#lanes.changes.has(id)),
      ...this.#groupOrder.buildWrites(),
    ]
  }
}
