// The statements with which a claim reads the groups of a flow (L5g): the groups that have a ready lane, in the order of their
// turns; the first ready lanes of some groups; and the live lanes of a group.
import type { Millis } from '../../clock.ts'
import { NEVER } from '../../clock.ts'
import type { LaneId } from '../../model/identity.ts'
import type { LaneHealth } from '../../model/lane.ts'
import { POSITIONED_LANE_COLUMNS, POSITIONED_LANE_WIDTH } from './lane-rows.ts'
import type { Db } from './row-cache.ts'
import { number, text, texts, escapeText, type Row } from './values.ts'

/** `GroupScope` names the lane healths of a flow in which a claim looks for lanes, and the time at which they must be ready. */
export interface GroupScope {
  readonly flow: string
  readonly healths: readonly LaneHealth[]
  readonly now: Millis
  /** The maximum number of live runs of one group. */
  readonly maxPerGroup: number
}

/** `GroupHead` is a group with a ready lane: its last turn, and the position of its first ready lane. */
export interface GroupHead {
  readonly group: string
  readonly lastServed: number
  readonly due: Millis
  readonly ticket: number
}

/**
 * `hasGroupLimit` returns whether groups have a maximum of live runs. Without one, no claim counts live runs, and claims of one
 * group need not wait for each other.
 */
export function hasGroupLimit({ maxPerGroup: perGroup }: Pick<GroupScope, 'maxPerGroup'>): boolean {
  return perGroup < NEVER
}

/**
 * The index of live lanes holds only lanes whose position is the end of their lease. Lanes with a group always have that
 * position (decision 12).
 */
const LIVE_OF = (group: string): string =>
  `l.flow = $1 and l.grp = ${group} and l.ring_lease is not null and l.lease > $3 and l.id <> all($4)`

/** Lanes with a group and lanes without one are found by different indexes. */
const GROUPED = `l.grp = g.grp and l.grp <> ''`
const ALONE = `l.grp = ''`
const READY = `l.line = a.line and l.rings <= $3 and (l.lease is null or l.lease <= $3) and l.id <> all($4)`
const IN_ORDER = 'order by l.rings, l.ring_ticket'

/**
 * The query steps from group to group by the index and takes the first lane of each health. Its cost grows with the number of
 * waiting groups.
 */
const buildHeadsQuery = (isLimited: boolean): string => `
with recursive groups (grp) as (
  (select grp from lanes where flow = $1 and rings is not null and grp <> '' order by grp limit 1)
  union all
  select (select l.grp from lanes l where l.flow = $1 and l.rings is not null and l.grp <> '' and l.grp > g.grp order by l.grp limit 1)
  from groups g where g.grp is not null
), heads as (
  select g.grp, h.rings, h.ring_ticket from groups g cross join unnest($2::smallint[]) as a (line) cross join lateral (
    select l.rings, l.ring_ticket from lanes l where l.flow = $1 and ${GROUPED} and ${READY} ${IN_ORDER} limit 1
  ) h where g.grp is not null
  union all
  select '', h.rings, h.ring_ticket from unnest($2::smallint[]) as a (line) cross join lateral (
    select l.rings, l.ring_ticket from lanes l where l.flow = $1 and ${ALONE} and ${READY} and l.due <= $3 ${IN_ORDER} limit 1
  ) h
), firsts as (
  select distinct on (h.grp) h.grp, h.rings, h.ring_ticket from heads h order by h.grp, h.rings, h.ring_ticket
)
select f.grp, coalesce(s.turn, 0) as turn, f.rings, f.ring_ticket
from firsts f left join served s on s.flow = $1 and s.grp = f.grp
where f.grp <> all($5)${isLimited ? ` and (select count(*) from (select from lanes l where ${LIVE_OF('f.grp')} limit $7) live) < $7` : ''}
order by turn, f.rings, f.ring_ticket limit $6`
const HEADS = buildHeadsQuery(false)
const HEADS_WITH_ROOM = buildHeadsQuery(true)

interface HeadsQuery {
  readonly most: number
  /** The lanes that the transaction has loaded, in any state. */
  readonly loadedLanes: readonly LaneId[]
  /** The groups that the claim already knows. */
  readonly knownGroups: readonly string[]
}

/**
 * `queryGroupHeads` returns the next groups in the order of their turns. It locks nothing, so another claim may take what it
 * finds.
 */
export async function queryGroupHeads(db: Db, asked: GroupScope, how: HeadsQuery): Promise<readonly GroupHead[]> {
  const { flow, healths, now, maxPerGroup: perGroup } = asked
  const values = [escapeText(flow), healths, now, how.loadedLanes, how.knownGroups.map(escapeText), how.most]
  const rows = hasGroupLimit(asked)
    ? await db.query(HEADS_WITH_ROOM, [...values, perGroup])
    : await db.query(HEADS, values)
  return rows.map((row) => ({
    group: text(row[0]),
    lastServed: number(row[1]),
    due: number(row[2]),
    ticket: number(row[3]),
  }))
}

/**
 * The query chooses the first lanes of all healths together and locks those that no other transaction holds. It omits a lane
 * that has changed meanwhile.
 */
const buildLanesQuery = (which: string): string => `
with chosen as materialized (
  select g.n, o.* from unnest($5::text[], $6::bigint[]) with ordinality as g (grp, most, n) cross join lateral (
    select h.* from unnest($2::smallint[]) as a (line) cross join lateral (
      select l.id, l.rings, l.ring_ticket from lanes l where l.flow = $1 and ${which} and ${READY} ${IN_ORDER} limit g.most
    ) h order by h.rings, h.ring_ticket limit g.most
  ) o
)
select l.*, c.n, c.rings, c.ring_ticket from chosen c left join lateral (
  select ${POSITIONED_LANE_COLUMNS} from lanes
  where id = c.id and rings <= $3 and (lease is null or lease <= $3) for update skip locked
) l on true order by c.n, c.rings, c.ring_ticket`
const LANES_OF_GROUPS = buildLanesQuery(GROUPED)
const LANES_WITHOUT_GROUP = buildLanesQuery(ALONE)

export interface GroupLanesQuery {
  readonly group: string
  /** The number of lanes to take from the front of the group. */
  readonly most: number
}

/** `LoadedGroupLanes` holds the first lanes of a group that could be locked, and how far the group is known. */
export interface LoadedGroupLanes {
  readonly lanes: readonly Row[]
  readonly last: Pick<GroupHead, 'due' | 'ticket'> | undefined
  /** No ready lane is behind them. */
  readonly isAll: boolean
}

export async function queryGroupLanes(
  db: Db,
  { flow, healths, now }: GroupScope,
  asked: readonly GroupLanesQuery[],
  loadedLanes: readonly LaneId[],
): Promise<readonly LoadedGroupLanes[]> {
  const query = async (sql: string, some: readonly GroupLanesQuery[]): Promise<readonly LoadedGroupLanes[]> => {
    if (some.length === 0) return []
    const groups = [some.map(({ group }) => escapeText(group)), some.map(({ most }) => most)]
    const rows = await db.query(sql, [escapeText(flow), healths, now, loadedLanes, ...groups])
    const byGroup = Map.groupBy(rows, (row) => number(row[POSITIONED_LANE_WIDTH]))
    return some.map(({ most }, n) => toLoadedGroupLanes(byGroup.get(n + 1) ?? [], most))
  }
  const [grouped, alone] = await Promise.all([
    query(
      LANES_OF_GROUPS,
      asked.filter(({ group }) => group !== ''),
    ),
    query(
      LANES_WITHOUT_GROUP,
      asked.filter(({ group }) => group === ''),
    ),
  ])
  const rest = [...grouped]
  return asked.map(({ group }) => (group === '' ? alone[0] : rest.shift()) ?? NO_LANES)
}

const NO_LANES: LoadedGroupLanes = { lanes: [], last: undefined, isAll: true }

function toLoadedGroupLanes(rows: readonly Row[], most: number): LoadedGroupLanes {
  const last = rows.at(-1)
  return {
    lanes: rows.filter((row) => row[0] !== null),
    last: last && { due: number(last[POSITIONED_LANE_WIDTH + 1]), ticket: number(last[POSITIONED_LANE_WIDTH + 2]) },
    isAll: rows.length < most,
  }
}

const LIVE = `select array(select l.id from lanes l where ${LIVE_OF('g.grp')} limit $5)
  from unnest($2::text[]) with ordinality as g (grp, n) order by g.n`

/** `queryLiveLanes` returns the live lanes of each group, without the loaded ones, and at most `maxPerGroup` of each. */
export async function queryLiveLanes(
  db: Db,
  { flow, now, maxPerGroup: perGroup }: GroupScope,
  groups: readonly string[],
  loadedLanes: readonly LaneId[],
): Promise<readonly (readonly LaneId[])[]> {
  const rows = await db.query(LIVE, [escapeText(flow), groups.map(escapeText), now, loadedLanes, perGroup])
  return rows.map((row) => texts(row[0]))
}
