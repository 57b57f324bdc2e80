// Whose turn it is among groups (L5g): the one that was served longest ago, then the one whose first lane is ready longest.
import type { Millis } from '../../clock.ts'
import { isLive, type Lane } from '../../model/lane.ts'
import type { LaneId } from '../../model/identity.ts'
import type { GroupQuery } from '../rules/tables.ts'
import { laneIdIn, STANDING_COLUMNS } from './lane-rows.ts'
import { Keyed, Questions, upsert, withJson, type Db, type Statement } from './part.ts'
import { byTurn, SOON } from './ready-lines.ts'
import { ringIn } from './standings.ts'
import { number, text, texts, written, type Row } from './values.ts'

interface Served {
  readonly flow: string
  readonly group: string
  readonly turn: number
  readonly at: Millis
}

/** What it has to know of the lanes of the transaction. */
export interface LanesAtHand {
  all(): Iterable<Lane>
  /** Of those that the server has. */
  stored(): readonly LaneId[]
  load(rows: readonly Row[]): readonly LaneId[]
}

type Line = Pick<GroupQuery, 'flow' | 'lines' | 'now'>

/** A group in a line. */
interface Standing extends Line {
  readonly group: string
}

interface Known {
  readonly standing: Standing
  readonly last: Pick<Lane, 'due' | 'ticket'> | undefined
  /** Nothing that is ready stands behind it, but for what others hold. */
  readonly isAll: boolean
  readonly times: number
}

const LOCK = `select ${STANDING_COLUMNS} from lanes where id = any($1) order by id for update skip locked`
/** Steps from group to group by the index: what it costs grows with the groups that wait, not with their lanes. */
const FIRST_OF_GROUPS = `
with recursive groups (grp) as (
  (select grp from lanes where flow = $1 and rings is not null and grp <> '' order by grp limit 1)
  union all
  select (select l.grp from lanes l where l.flow = $1 and l.rings is not null and l.grp <> '' and l.grp > g.grp order by l.grp limit 1)
  from groups g where g.grp is not null
), ready as (
  select g.grp, h.id, h.rings, h.ring_ticket from groups g, lateral (
    select l.id, l.rings, l.ring_ticket from lanes l
    where l.flow = $1 and l.grp = g.grp and l.grp <> '' and l.line = any($2) and l.rings <= $3 and l.id <> all($7)
    order by l.rings, l.ring_ticket limit $4
  ) h where g.grp is not null
  union all
  (select '', l.id, l.rings, l.ring_ticket from lanes l
   where l.flow = $1 and l.grp = '' and l.line = any($2) and l.rings <= $3 and (l.lease is null or l.lease <= $3) and l.id <> all($7)
   order by l.rings, l.ring_ticket limit $4)
), firsts as (
  select r.grp, coalesce(s.turn, 0) as turn, array_agg(r.id order by r.rings, r.ring_ticket) as ids,
    (array_agg(r.rings order by r.rings, r.ring_ticket))[1] as due, (array_agg(r.ring_ticket order by r.rings, r.ring_ticket))[1] as ticket,
    array(select l.id from lanes l where l.flow = $1 and l.grp = r.grp and l.ring_lease is not null and l.lease > $3 and l.id <> all($7) limit $5) as live
  from ready r left join served s on s.flow = $1 and s.grp = r.grp group by r.grp, s.turn
)
select grp, turn, ids, live from firsts where cardinality(live) < $5 order by turn, due, ticket limit $6`

/** Of one group, those that are not known yet. */
const MORE = `select ${STANDING_COLUMNS} from lanes where flow = $1 and grp = $2 and line = any($3) and rings <= $4 and (lease is null or lease <= $4) and id <> all($5)
  order by rings, ring_ticket limit $6 for update skip locked`
const LIVE = 'select id from lanes where flow = $1 and grp = $2 and ring_lease is not null and lease > $3 limit $4'

/** More than this may as well be all. */
function atMost(perGroup: number): number {
  return Math.min(perGroup, 100_000)
}

const SERVED_COLUMNS = ['flow', 'grp', 'turn', 'at']
const PUT = upsert('served', SERVED_COLUMNS, ['flow', 'grp'])
const LONG_AGO = `select s.flow, s.grp, s.turn,
  exists (select 1 from lanes l where l.flow = s.flow and l.grp = s.grp and l.rings is not null)
  from served s where s.at <= $1 order by s.at limit $2`

export class GroupTurns {
  readonly #lanes: LanesAtHand
  readonly #served = new Keyed<Served>()
  readonly #groups = new Questions<[query: GroupQuery], true>()
  /** How far the line of a group is known, by its name. */
  readonly #known = new Map<string, Known>()
  readonly #more = new Questions<[query: Standing, times: number], true>()
  /** The lanes of a group that run, as far as it matters. */
  readonly #live = new Questions<[flow: string, group: string, now: Millis, most: number], readonly LaneId[]>()
  readonly #longAgo = new Questions<
    [before: Millis, n: number],
    readonly { readonly row: Served; readonly waits: boolean }[]
  >()

  constructor(lanes: LanesAtHand) {
    this.#lanes = lanes
  }

  inTurn({ flow, lines, now, perGroup, n }: GroupQuery): readonly Lane[] {
    // Asked at a moment that is known: whose turn it is takes more than one question.
    if (now === SOON || this.#groups.ask({ flow, lines, now, perGroup, n }) === undefined) return []
    const live = new Map<string, number>()
    const ready = new Map<string, Lane[]>()
    for (const lane of this.#lanes.all()) {
      if (lane.flow !== flow) continue
      if (lane.run !== undefined && isLive(lane.run, now)) live.set(lane.group, (live.get(lane.group) ?? 0) + 1)
      if (lane.due > now || !lines.includes(lane.line)) continue
      const its = ready.get(lane.group)
      if (its === undefined) ready.set(lane.group, [lane])
      else its.push(lane)
    }
    const heads = this.#headsOf({ flow, lines, now }, ready)
    const stored = new Set(this.#lanes.stored())
    const others = (group: string): number =>
      (this.#live.ask(flow, group, now, atMost(perGroup)) ?? []).filter((id) => !stored.has(id)).length
    const served = (lane: Lane): number => this.#served.get(nameOf(flow, lane.group))?.turn ?? 0
    return heads
      .filter((lane) => (live.get(lane.group) ?? 0) + others(lane.group) < perGroup)
      .toSorted((one, other) => served(one) - served(other) || byTurn(one, other))
      .slice(0, n)
  }

  /** The first ready lane of each group: one that surely has nobody unknown before it. */
  #headsOf(line: Line, ready: ReadonlyMap<string, readonly Lane[]>): readonly Lane[] {
    const places = new Map(Array.from(ready.keys(), (group) => [nameOfLine({ ...line, group }), { ...line, group }]))
    for (const [name, { standing }] of this.#known) if (isSame(standing, line)) places.set(name, standing)
    return [...places].flatMap(([name, standing]) => {
      const known = this.#known.get(name)
      const { last } = known ?? { last: undefined }
      const lanes = ready.get(standing.group) ?? []
      const trusted =
        known?.isAll === true ? lanes : last === undefined ? [] : lanes.filter((lane) => byTurn(lane, last) <= 0)
      if (trusted.length === 0 && known?.isAll !== true) this.#more.ask(standing, known?.times ?? 0)
      return trusted.toSorted(byTurn).slice(0, 1)
    })
  }

  tookTurn({ flow, group }: Lane, turn: number, at: Millis): void {
    this.#served.put(nameOf(flow, group), { flow, group, turn, at })
  }

  forget(before: Millis, now: Millis, n: number): number {
    const old = this.#longAgo.ask(before, n) ?? []
    for (const { row, waits } of old) {
      const name = nameOf(row.flow, row.group)
      if (waits) this.#served.put(name, { ...row, at: now })
      else this.#served.remove(name)
    }
    return old.length
  }

  again(): void {
    this.#served.again()
    this.#groups.again()
    this.#more.again()
    this.#live.again()
    this.#longAgo.again()
  }

  get isLacking(): boolean {
    return (
      this.#served.isLacking ||
      this.#groups.isLacking ||
      this.#more.isLacking ||
      this.#live.isLacking ||
      this.#longAgo.isLacking
    )
  }

  async load(db: Db): Promise<void> {
    await Promise.all([
      this.#groups.load((query) => this.#firsts(db, query)),
      this.#more.load((standing, times) => this.#behind(db, standing, times)),
      this.#live.load(async (flow, group, now, most) =>
        (await db.rows(LIVE, [written(flow), written(group), now, most])).map((row) => text(row[0])),
      ),
      this.#longAgo.load(async (before, n) =>
        (await db.rows(LONG_AGO, [before, n])).map((row) => {
          const found = { flow: text(row[0]), group: text(row[1]), turn: number(row[2]), at: before }
          this.#served.load(nameOf(found.flow, found.group), found)
          return { row: found, waits: row[3] === true }
        }),
      ),
      ...this.#served.lacking().map(async (name) => {
        const [flow = '', group = ''] = JSON.parse(name) as readonly string[]
        const [row] = await db.rows('select turn, at from served where flow = $1 and grp = $2', [
          written(flow),
          written(group),
        ])
        this.#served.load(
          name,
          row === undefined ? undefined : { flow, group, turn: number(row[0]), at: number(row[1]) },
        )
      }),
    ])
  }

  async #firsts(db: Db, { flow, lines, now, perGroup, n }: GroupQuery): Promise<true> {
    const most = atMost(perGroup)
    const each = Math.min(n, most)
    // One more: of lanes without a group the first may stand too early.
    const rows = await db.rows(FIRST_OF_GROUPS, [written(flow), lines, now, each, most, n + 1, this.#lanes.stored()])
    const heads = rows.flatMap((row) => texts(row[2]))
    const locked = new Map((heads.length === 0 ? [] : await db.rows(LOCK, [heads])).map((row) => [laneIdIn(row), row]))
    this.#lanes.load([...locked.values()])
    for (const row of rows) {
      const group = text(row[0])
      const name = nameOf(flow, group)
      const turn = number(row[1])
      if (!this.#served.knows(name)) this.#served.load(name, turn === 0 ? undefined : { flow, group, turn, at: 0 })
      this.#live.know([flow, group, now, most], texts(row[3]))
      const ids = texts(row[2])
      const found = ids.map((id) => locked.get(id)).filter((one) => one !== undefined)
      this.#learn({ flow, lines, now, group }, found, ids.length < each)
    }
    return true
  }

  async #behind(db: Db, standing: Standing, times: number): Promise<true> {
    const { flow, group, lines, now } = standing
    const n = MORE_AT_ONCE * 2 ** times
    const rows = await db.rows(MORE, [written(flow), written(group), lines, now, this.#lanes.stored(), n])
    this.#lanes.load(rows)
    this.#learn(standing, rows, rows.length < n)
    return true
  }

  #learn(standing: Standing, rows: readonly Row[], isAll: boolean): void {
    const name = nameOfLine(standing)
    const before = this.#known.get(name)
    const row = rows.at(-1)
    const last = row === undefined ? before?.last : ringIn(row)
    this.#known.set(name, { standing, last, isAll, times: (before?.times ?? 0) + 1 })
  }

  writes(): readonly Statement[] {
    const rows = this.#served.kept.map(({ flow, group, turn, at }) => ({
      flow: written(flow),
      grp: written(group),
      turn,
      at,
    }))
    const forgotten = this.#served.removed.map((name): Statement => {
      const [flow = '', group = ''] = JSON.parse(name) as readonly string[]
      return ['delete from served where flow = $1 and grp = $2', [written(flow), written(group)]]
    })
    return [...withJson(PUT, rows), ...forgotten]
  }
}

const MORE_AT_ONCE = 4

function nameOfLine({ flow, lines, now, group }: Standing): string {
  return JSON.stringify([flow, lines, now, group])
}

function isSame(one: Line, other: Line): boolean {
  return one.flow === other.flow && one.now === other.now && one.lines.join() === other.lines.join()
}

function nameOf(flow: string, group: string): string {
  return JSON.stringify([flow, group])
}
