// The figures of the store. They cost as much as there are flows, not as there are lanes.
import { NEVER, type Millis } from '../../clock.ts'
import { FAILING, HEALTHY, SUSPECT, type Line } from '../../model/lane.ts'
import { FRESH_LIMIT, stretchAt, type LimitState } from '../../model/limit.ts'
import type { MarkReason } from '../contract/index.ts'
import type { TableStats } from '../rules/tables.ts'
import type { Db } from './part.ts'
import { moment, number, text } from './values.ts'

/** Counted up to here: figures are asked for often, and a million lanes take a while. */
const LANES_COUNTED = 10_000

/** Lanes that run and stand as if they waited are the first of their line: with more than this the figure is too low. */
const EARLY_COUNTED = 2_000

/** Lanes may stand too early in the index: so many that do are seen through. */
const FIRST_LOOKED_AT = 100

/** Of a line, but for lanes that run and stand there still as if they waited. */
const firstOf = (line: Line): string => `(select min(due) from (
    select l.due from lanes l where l.flow = f.flow and l.line = ${line} and l.rings is not null and (l.rings > $1 or l.lease is null or l.lease <= $1)
    order by l.rings, l.ring_ticket limit ${FIRST_LOOKED_AT}) first)`

/** Steps from flow to flow by the index. */
const FLOWS = `
with recursive waiting (flow) as (
  (select flow from lanes where rings is not null order by flow limit 1)
  union all
  select (select l.flow from lanes l where l.rings is not null and l.flow > w.flow order by l.flow limit 1) from waiting w where w.flow is not null
), dead (flow) as (
  (select flow from letters order by flow limit 1)
  union all
  select (select l.flow from letters l where l.flow > d.flow order by l.flow limit 1) from dead d where d.flow is not null
), flows as (
  select flow from waiting where flow is not null union select flow from pauses union select flow from dead where flow is not null
)
select f.flow,
  (select count(*) from (select 1 from lanes l where l.flow = f.flow and l.rings is not null limit ${LANES_COUNTED}) c),
  early.count + running.count,
  least(early.due, running.due, ${[HEALTHY, FAILING, SUSPECT].map(firstOf).join(', ')}),
  p.reason, p.by, p.since
from flows f left join pauses p on p.flow = f.flow cross join lateral (
  select count(*), min(due) as due from (
    select l.lease, l.ring_lease, l.due from lanes l where l.flow = f.flow and l.line = ${HEALTHY} and l.rings <= $1
    order by l.rings, l.ring_ticket limit ${EARLY_COUNTED}
  ) first where lease > $1 and ring_lease is null
) early cross join lateral (
  select count(*), min(l.due) as due from lanes l where l.flow = f.flow and l.ring_lease is not null and l.lease > $1
) running`

export async function statsOf(db: Db, now: Millis): Promise<TableStats> {
  const [flows, letters, marks, limits, size] = await Promise.all([
    db.rows(FLOWS, [now]),
    db.rows('select count(*) from letters'),
    db.rows('select reason, count(*), min(since) from marks group by reason'),
    db.rows('select name, state from limits order by idle_at desc limit 1000'),
    db.rows('select sum(bytes) from stored_bytes'),
  ])
  return {
    flows: flows.map((row) => {
      const due = moment(row[3])
      return {
        flow: text(row[0]),
        lanes: number(row[1]),
        live: number(row[2]),
        due: due === NEVER ? undefined : due,
        paused: row[4] === null ? undefined : { reason: text(row[4]), by: text(row[5]), since: number(row[6]) },
      }
    }),
    letters: number(letters[0]?.[0]),
    marks: marks.map((row) => ({ reason: text(row[0]) as MarkReason, count: number(row[1]), oldest: number(row[2]) })),
    limits: limits.map(([name, kept]) => {
      const state = { ...FRESH_LIMIT, ...(JSON.parse(String(kept)) as LimitState) }
      const { epoch, pausedUntil, last, promised } = state
      return { name: text(name), epoch, pausedUntil, last: Math.max(last, promised), stretch: stretchAt(state, now) }
    }),
    bytes: number(size[0]?.[0]),
  }
}
