// `PostgresGroupOrder` decides which group is next (L5g): the group that was served longest ago, then the group whose first
// lane has been ready longest. A claim first finds the next groups, then takes lanes of as many groups as it needs. If a group
// has a maximum of live runs, the claim locks the group before it counts them: of two claims at the same time, the second
// counts the runs that the first began (decision 14).
import type { Millis } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { Lane } from '../../model/lane.ts'
import type { GroupQuery } from '../core/tables.ts'
import { ClaimedGroups } from './claimed-groups.ts'
import {
  queryGroupHeads,
  hasGroupLimit,
  queryGroupLanes,
  queryLiveLanes,
  type GroupLanesQuery,
} from './group-queries.ts'
import type { AdvisoryLocks } from './locks.ts'
import { RowCache, QueryCache, buildUpsert, bindJson, each, type Db, type Statement } from './row-cache.ts'
import { UNKNOWN_NOW } from './ready-lanes.ts'
import { number, text, escapeText, type Row } from './values.ts'

interface ServedGroup {
  readonly flow: string
  readonly group: string
  readonly lastServed: number
  readonly at: Millis
}

/** `TransactionLanes` is what the group order needs of the transaction's lanes. */
export interface TransactionLanes {
  all(): Iterable<Lane>
  has(id: LaneId): boolean
  /** `storedIds` returns the ids of the loaded lanes that the server has. */
  storedIds(): readonly LaneId[]
  load(rows: readonly Row[]): readonly LaneId[]
}

type GroupsToTake = readonly [groups: ClaimedGroups, asked: readonly GroupLanesQuery[]]

const PUT = buildUpsert('served', 'flow, grp, turn, at', 'flow, grp')
const SERVED = 'select turn, at from served where flow = $1 and grp = $2'
const LONG_AGO = `select s.flow, s.grp, s.turn,
  exists (select 1 from lanes l where l.flow = s.flow and l.grp = s.grp and l.rings is not null)
  from served s where s.at <= $1 order by s.at limit $2`

export class PostgresGroupOrder {
  readonly #lanes: TransactionLanes
  readonly #locks: AdvisoryLocks
  readonly #served = new RowCache<ServedGroup>(async (db, names) =>
    Promise.all(
      names.map(async (name) => {
        const [flow, group] = parseGroupKey(name)
        const [row] = await db.query(SERVED, [escapeText(flow), escapeText(group)])
        const served = row === undefined ? undefined : { flow, group, lastServed: number(row[0]), at: number(row[1]) }
        return [name, served] as const
      }),
    ),
  )
  readonly #claims = new Map<string, ClaimedGroups>()
  readonly #longUnserved = new QueryCache(
    each(async (db, before: Millis, n: number) =>
      (await db.query(LONG_AGO, [before, n])).map((row) => {
        const found = { flow: text(row[0]), group: text(row[1]), lastServed: number(row[2]), at: before }
        this.#served.setLoaded(groupKey(found.flow, found.group), found)
        return { row: found, waits: row[3] === true }
      }),
    ),
  )
  /** Whether groups are locked. From then on, this transaction waits for no other group. */
  #hasLocked = false

  constructor(lanes: TransactionLanes, locks: AdvisoryLocks) {
    this.#lanes = lanes
    this.#locks = locks
  }

  findGroupHeads(query: GroupQuery): readonly Lane[] {
    const { flow, healths, now, n } = query
    // Group heads are only read at a known time, because finding the next group takes more than one query.
    if (now === UNKNOWN_NOW) return []
    return this.#getClaim(query).findNext(n, healths, {
      lanes: this.#lanes.all(),
      has: (id) => this.#lanes.has(id),
      getLastServed: (group) => this.#served.get(groupKey(flow, group))?.lastServed ?? 0,
    })
  }

  /** Healths drop out of a query when their slots run out. So a claim that knows more healths also serves queries for fewer. */
  #getClaim({ flow, healths, now, maxPerGroup: perGroup }: GroupQuery): ClaimedGroups {
    const name = JSON.stringify([flow, now, perGroup])
    const known = this.#claims.get(name)
    if (known !== undefined && healths.every((health) => known.scope.healths.includes(health))) return known
    const all = [...new Set([...(known?.scope.healths ?? []), ...healths])]
    const claim = new ClaimedGroups({ flow, healths: all, now, maxPerGroup: perGroup })
    this.#claims.set(name, claim)
    return claim
  }

  recordGroupServed({ flow, group }: Lane, lastServed: number, at: Millis): void {
    this.#served.put(groupKey(flow, group), { flow, group, lastServed, at })
  }

  forgetGroupTurns(before: Millis, now: Millis, n: number): number {
    const old = this.#longUnserved.get(before, n) ?? []
    for (const { row, waits } of old) {
      const name = groupKey(row.flow, row.group)
      if (waits) this.#served.put(name, { ...row, at: now })
      else this.#served.remove(name)
    }
    return old.length
  }

  resetPass(): void {
    this.#served.resetPass()
    for (const claim of this.#claims.values()) claim.resetPass()
    this.#longUnserved.resetPass()
  }

  get hasMisses(): boolean {
    const claims = [...this.#claims.values()]
    return this.#served.hasMisses || this.#longUnserved.hasMisses || claims.some((claim) => claim.hasMisses)
  }

  /**
   * `mayWait` is true if the transaction has no other miss that another transaction may hold. So a holder of a group never
   * waits for this transaction.
   */
  async load(db: Db, mayWait: boolean): Promise<void> {
    const claims = [...this.#claims.values()]
    const toTake = claims.map((claim): GroupsToTake => [claim, claim.takeMissingLanes()])
    await Promise.all([
      ...claims.map((claim) => this.#loadHeads(db, claim)),
      this.#takeGroups(
        db,
        toTake.filter(([, asked]) => asked.length > 0),
        mayWait,
      ),
      this.#longUnserved.load(db),
      this.#served.load(db),
    ])
  }

  async #loadHeads(db: Db, claim: ClaimedGroups): Promise<void> {
    const most = claim.takeMissingHeads()
    if (most === 0) return
    const { flow } = claim.scope
    const heads = await queryGroupHeads(db, claim.scope, {
      most,
      loadedLanes: this.#lanes.storedIds(),
      knownGroups: claim.groups,
    })
    claim.addHeads(heads, most)
    for (const { group, lastServed } of heads) {
      const name = groupKey(flow, group)
      if (!this.#served.isLoaded(name))
        this.#served.setLoaded(name, lastServed === 0 ? undefined : { flow, group, lastServed, at: 0 })
    }
  }

  async #takeGroups(db: Db, toTake: readonly GroupsToTake[], mayWait: boolean): Promise<void> {
    const names = toTake.flatMap(([claim, asked]) =>
      hasGroupLimit(claim.scope) ? asked.map(({ group }) => groupLockName(claim.scope.flow, group)) : [],
    )
    const isHeld = await this.#lockGroups(db, names, mayWait)
    if (isHeld === undefined) return
    await Promise.all(toTake.map(([claim, asked]) => this.#takeLanes(db, claim, asked, isHeld)))
  }

  /**
   * `lockGroups` locks all groups of all claims with one statement, in one order. A transaction that already holds groups and
   * needs more is out of that order, so it skips groups that others hold. The function returns which groups it holds, or
   * undefined if it may not wait for them now.
   */
  async #lockGroups(
    db: Db,
    names: readonly string[],
    mayWait: boolean,
  ): Promise<((name: string) => boolean) | undefined> {
    const wanted = names.filter((name) => !this.#locks.isHeld(name))
    if (wanted.length === 0) return () => true
    if (this.#hasLocked) {
      await this.#locks.tryExclusive(db, wanted)
      return (name) => this.#locks.isHeld(name)
    }
    if (!mayWait) return undefined
    this.#hasLocked = true
    for (const name of wanted) this.#locks.require(name)
    // The lock need not be awaited: the server executes later statements after it.
    const locked = this.#locks.load(db)
    locked.catch(() => {})
    return () => true
  }

  async #takeLanes(
    db: Db,
    claim: ClaimedGroups,
    wanted: readonly GroupLanesQuery[],
    isHeld: (name: string) => boolean,
  ): Promise<void> {
    const hasLimit = hasGroupLimit(claim.scope)
    const asked = wanted.filter(({ group }) => !hasLimit || isHeld(groupLockName(claim.scope.flow, group)))
    for (const one of wanted) if (!asked.includes(one)) claim.skip(one.group)
    const fresh = asked.flatMap(({ group }) => (hasLimit && !claim.isDecided(group) ? [group] : []))
    const loadedLanes = this.#lanes.storedIds()
    const [live, found] = await Promise.all([
      fresh.length === 0 ? [] : queryLiveLanes(db, claim.scope, fresh, loadedLanes),
      queryGroupLanes(db, claim.scope, asked, loadedLanes),
    ])
    for (const [n, { group }] of asked.entries()) {
      const its = found[n]
      if (its === undefined) continue
      this.#lanes.load(its.lanes)
      claim.addTaken(group, its, live[fresh.indexOf(group)])
    }
  }

  buildWrites(): readonly Statement[] {
    // The rows are written in one order, because two claims without a maximum may serve the same groups.
    const rows = this.#served.changedRows
      .map(({ flow, group, lastServed, at }) => ({
        flow: escapeText(flow),
        grp: escapeText(group),
        turn: lastServed,
        at,
      }))
      .toSorted((one, other) => compareText(one.flow, other.flow) || compareText(one.grp, other.grp))
    const forgotten = this.#served.removedKeys.map((name): Statement => {
      const [flow, group] = parseGroupKey(name)
      return ['delete from served where flow = $1 and grp = $2', [escapeText(flow), escapeText(group)]]
    })
    return [...bindJson(PUT, rows), ...forgotten]
  }
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

function groupKey(flow: string, group: string): string {
  return JSON.stringify([flow, group])
}

function parseGroupKey(name: string): readonly [flow: string, group: string] {
  const [flow = '', group = ''] = JSON.parse(name) as readonly string[]
  return [flow, group]
}

function groupLockName(flow: string, group: string): string {
  return `group/${groupKey(flow, group)}`
}
