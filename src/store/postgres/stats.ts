// `queryStats` reads the stats of the store. Its cost grows with the number of flows, not of lanes.
import { NEVER, type Millis } from '../../clock.ts'
import { FAILING, HEALTHY, SUSPECT, type LaneHealth } from '../../model/lane.ts'
import { computeStretch } from '../../model/limit.ts'
import type { UnroutedReason } from '../contract/index.ts'
import type { TableStats } from '../core/tables.ts'
import { parseLimitState } from '../sql/rows.ts'
import type { Db } from './row-cache.ts'
import { millisOrNever, number, text } from './values.ts'

/** The count of lanes stops here: stats are read often, and counting a million lanes takes too long. */
const LANES_COUNTED = 10_000

/**
 * Running lanes that keep their old index position come first in it. With more of them than this, the count of live runs is too
 * low.
 */
const RUNNING_COUNTED = 2_000

/** A lane may have too early an index position. The query inspects this many lanes to find the earliest deadline. */
const EARLY_LANES_SCANNED = 100

/** Selects the first deadline of one health, without running lanes that keep their old index position. */
const selectFirstDue = (line: LaneHealth): string => `(select min(due) from (
    select l.due from lanes l where l.flow = f.flow and l.line = ${line} and l.rings is not null and (l.rings > $1 or l.lease is null or l.lease <= $1)
    order by l.rings, l.ring_ticket limit ${EARLY_LANES_SCANNED}) first)`

/**
 * The query steps from flow to flow by the indexes. A lane that is held without an end has no deadline, even while its run is
 * live.
 */
const FLOWS = `
with recursive waiting (flow) as (
  (select flow from lanes where rings is not null order by flow limit 1)
  union all
  select (select l.flow from lanes l where l.rings is not null and l.flow > w.flow order by l.flow limit 1) from waiting w where w.flow is not null
), live (flow) as (
  (select flow from lanes where ring_lease is not null order by flow limit 1)
  union all
  select (select l.flow from lanes l where l.ring_lease is not null and l.flow > v.flow order by l.flow limit 1) from live v where v.flow is not null
), dead (flow) as (
  (select flow from letters order by flow limit 1)
  union all
  select (select l.flow from letters l where l.flow > d.flow order by l.flow limit 1) from dead d where d.flow is not null
), flows as (
  select flow from waiting where flow is not null union select flow from live where flow is not null
  union select flow from pauses union select flow from dead where flow is not null
)
select f.flow,
  (select count(*) from (select 1 from lanes l where l.flow = f.flow and l.rings is not null limit ${LANES_COUNTED}) c),
  early.count + running.count,
  least(early.due, running.due, ${[HEALTHY, FAILING, SUSPECT].map(selectFirstDue).join(', ')}),
  p.reason, p.by, p.since
from flows f left join pauses p on p.flow = f.flow cross join lateral (
  select count(*), min(due) as due from (
    select l.lease, l.ring_lease, l.due from lanes l where l.flow = f.flow and l.line = ${HEALTHY} and l.rings <= $1
    order by l.rings, l.ring_ticket limit ${RUNNING_COUNTED}
  ) first where lease > $1 and ring_lease is null
) early cross join lateral (
  select count(*), min(l.due) as due from lanes l where l.flow = f.flow and l.ring_lease is not null and l.lease > $1
) running`

export async function queryStats(db: Db, now: Millis): Promise<TableStats> {
  const [flows, deadLetters, unrouted, limits, size] = await Promise.all([
    db.query(FLOWS, [now]),
    db.query('select count(*) from letters'),
    db.query('select reason, count(*), min(since) from marks group by reason'),
    db.query('select name, state from limits order by idle_at desc limit 1000'),
    db.query('select sum(bytes) from stored_bytes'),
  ])
  return {
    flows: flows.map((row) => {
      const due = millisOrNever(row[3])
      return {
        flow: text(row[0]),
        lanes: number(row[1]),
        live: number(row[2]),
        due: due === NEVER ? undefined : due,
        paused: row[4] === null ? undefined : { reason: text(row[4]), by: text(row[5]), since: number(row[6]) },
      }
    }),
    deadLetters: number(deadLetters[0]?.[0]),
    unrouted: unrouted.map((row) => ({
      reason: text(row[0]) as UnroutedReason,
      count: number(row[1]),
      oldest: number(row[2]),
    })),
    limits: limits.map(([name, kept]) => {
      const state = parseLimitState(String(kept))
      const { epoch, pausedUntil, last, promised } = state
      return {
        name: text(name),
        epoch,
        pausedUntil,
        last: Math.max(last, promised),
        stretch: computeStretch(state, now),
      }
    }),
    bytes: number(size[0]?.[0]),
  }
}
